//! The configuration of a session, as a client sends it. Pure.

use std::{collections::HashSet, time::Duration};

use serde_json::json;

use kontekst_store::config::{KaiakConfig, KaiakProvider};

use super::{
    error::{Code, RpcError, bad_field},
    params::Fields,
};

/// Providers that the API names. They are known even if they are not configured; any other name is an error.
const KNOWN_PROVIDERS: &[&str] = &["openai", "anthropic"];

/// Names for the model that the daemon uses anyway.
const LOCAL_PROVIDER_NAMES: &[&str] = &["kontekst", "local"];

/// The settings of a session's runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(crate) model: Option<String>,
    pub(crate) endpoint: Option<String>,
    /// The time limit for one request, without the time in which it waits for the user.
    pub(crate) timeout: Duration,
    /// The most model calls of one run.
    pub(crate) max_turns: u32,
}

/// Reads the `configuration` of a session. `providers_without_key` are the configured providers whose API key is
/// missing.
///
/// # Errors
///
/// [`Code::InvalidParams`] for a wrong field, [`Code::Configuration`] for a provider that the daemon cannot use.
pub(super) fn read(
    json: Option<&str>,
    config: &KaiakConfig,
    providers_without_key: &HashSet<String>,
) -> Result<Settings, RpcError> {
    let fields = Fields::read(json.or(Some("{}")), ["provider", "model", "timeout", "max_turns"])?;
    // Source of the ranges: the upstream project's next contract. The seed has the defaults as its example.
    let timeout = fields.optional_integer("timeout", 30, 3600).map_err(in_configuration)?.unwrap_or(300);
    let max_turns = fields.optional_integer("max_turns", 1, 100).map_err(in_configuration)?.unwrap_or(50);
    let model = fields.optional_text("model").map_err(in_configuration)?;
    if let Some(model) = &model
        && (model.is_empty() || model.len() > 256 || model.chars().any(char::is_control))
    {
        return Err(in_configuration(bad_field("model", "is not the name of a model")));
    }
    let provider = match fields.optional_text("provider").map_err(in_configuration)? {
        Some(name) => find_provider(&name, config, providers_without_key)?,
        None => None,
    };
    Ok(Settings {
        model: model.or_else(|| provider.and_then(|provider| provider.model.clone())),
        endpoint: provider.map(|provider| provider.endpoint.clone()),
        timeout: Duration::from_secs(timeout),
        max_turns: u32::try_from(max_turns).expect("at most 100"),
    })
}

/// Returns the configured provider of this name, or `None` if the name stands for the daemon's own model.
fn find_provider<'a>(
    name: &str,
    config: &'a KaiakConfig,
    providers_without_key: &HashSet<String>,
) -> Result<Option<&'a KaiakProvider>, RpcError> {
    let Some(provider) = config.providers.get(name) else {
        if LOCAL_PROVIDER_NAMES.contains(&name) {
            return Ok(None);
        }
        if KNOWN_PROVIDERS.contains(&name) {
            return Err(Code::Configuration.with(json!({
                "provider": name,
                "reason": "this provider is not configured",
                "suggestion": "leave `provider` out to use the daemon's own model, or add it to [kaiak] providers \
                               in config.toml",
            })));
        }
        return Err(in_configuration(bad_field("provider", "is not a known provider")));
    };
    if providers_without_key.contains(name) {
        let variable = provider.api_key_env.as_deref().unwrap_or("the variable");
        return Err(Code::Configuration.with(json!({
            "provider": name,
            "reason": "its key is missing",
            "suggestion": format!("set {variable} in the daemon's environment"),
        })));
    }
    Ok(Some(provider))
}

/// Returns an error about a field of `configuration`, which names it by its full path.
fn in_configuration(mut error: RpcError) -> RpcError {
    if let Some(field) = error.data.as_mut().and_then(|data| data.get_mut("field")) {
        *field = format!("configuration.{}", field.as_str().unwrap_or_default()).into();
    }
    error
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn config() -> KaiakConfig {
        let provider = |model: Option<&str>, key: Option<&str>| KaiakProvider {
            endpoint: "https://api.example".to_owned(),
            model: model.map(str::to_owned),
            api_key_env: key.map(str::to_owned),
        };
        let providers = [
            ("openai".to_owned(), provider(Some("gpt-4"), None)),
            ("keyless".to_owned(), provider(None, Some("KEY"))),
        ];
        KaiakConfig { providers: providers.into(), ..KaiakConfig::default() }
    }

    fn reading(json: &Value) -> Result<Settings, RpcError> {
        read(Some(&json.to_string()), &config(), &["keyless".to_owned()].into())
    }

    #[test]
    fn the_seeds_example_and_an_empty_configuration_are_accepted() {
        let seed =
            json!({"provider": "openai", "model": "gpt-4", "timeout": 300, "max_turns": 50, "api_key": "x"});
        let settings = reading(&seed).unwrap();
        assert_eq!(settings.endpoint.as_deref(), Some("https://api.example"));
        assert_eq!(settings, reading(&json!({"provider": "openai"})).unwrap());
        let plain = read(None, &config(), &HashSet::new()).unwrap();
        assert_eq!((plain.endpoint, plain.model, plain.max_turns), (None, None, 50));
        assert_eq!(reading(&json!({"provider": null, "timeout": null})).unwrap().timeout.as_secs(), 300);
        assert_eq!(reading(&json!({"provider": "local", "model": "m"})).unwrap().model.as_deref(), Some("m"));
    }

    #[test]
    fn a_wrong_field_is_named() {
        for (bad, field) in [
            (json!({"timeout": "300"}), "timeout"),
            (json!({"timeout": -1}), "timeout"),
            (json!({"timeout": 0.5}), "timeout"),
            (json!({"max_turns": 0}), "max_turns"),
            (json!({"max_turns": 101}), "max_turns"),
            (json!({"provider": "no-such"}), "provider"),
            (json!({"provider": 5}), "provider"),
            (json!({"model": ""}), "model"),
        ] {
            let error = reading(&bad).unwrap_err();
            assert_eq!(error.code, Code::InvalidParams, "{bad}");
            assert_eq!(error.data.unwrap()["field"], format!("configuration.{field}"));
        }
        for unusable in ["anthropic", "keyless"] {
            let error = reading(&json!({"provider": unusable})).unwrap_err();
            assert_eq!(error.code, Code::Configuration, "{unusable}");
        }
    }
}
