//! What a client may configure for a session. Pure.

use std::{collections::HashSet, time::Duration};

use serde_json::json;

use crate::config::KaiakConfig;

use super::{
    error::{Code, RpcError, bad_field},
    params::Fields,
};

/// Providers that the API names; others are wrong, these are only not configured.
const KNOWN_PROVIDERS: &[&str] = &["openai", "anthropic"];

/// Names for what the daemon uses anyway.
const LOCAL_PROVIDER_NAMES: &[&str] = &["kontekst", "local"];

/// How the runs of a session are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub model: Option<String>,
    pub endpoint: Option<String>,
    /// What one request may take, the time left out in which it waits for the user.
    pub timeout: Duration,
    /// Model calls for one file.
    pub max_turns: u32,
}

/// Reads `configuration`; `keyless` are the configured providers whose key is not there.
///
/// # Errors
///
/// [`Code::InvalidParams`] for what is wrong, [`Code::Configuration`] for what the daemon has not got.
pub(super) fn read(
    json: Option<&str>,
    config: &KaiakConfig,
    providers_without_key: &HashSet<String>,
) -> Result<Settings, RpcError> {
    let fields = Fields::read(json.or(Some("{}")), ["provider", "model", "timeout", "max_turns"])?;
    let in_configuration = |error: RpcError| {
        let mut error = error;
        if let Some(field) = error.data.as_mut().and_then(|data| data.get_mut("field")) {
            *field = format!("configuration.{}", field.as_str().unwrap_or_default()).into();
        }
        error
    };
    // Source of the ranges: upstream's next contract; the seed has the defaults as its example.
    let timeout = fields.optional_integer("timeout", 30, 3600).map_err(in_configuration)?.unwrap_or(300);
    let max_turns = fields.optional_integer("max_turns", 1, 100).map_err(in_configuration)?.unwrap_or(50);
    let model = fields.optional_text("model").map_err(in_configuration)?;
    if let Some(model) = &model
        && (model.is_empty() || model.len() > 256 || model.chars().any(char::is_control))
    {
        return Err(in_configuration(bad_field("model", "is not the name of a model")));
    }
    let provider = fields.optional_text("provider").map_err(in_configuration)?;
    let chosen = match provider.as_deref() {
        None => None,
        Some(name) if config.providers.contains_key(name) => config.providers.get(name).map(|p| (name, p)),
        Some(name) if LOCAL_PROVIDER_NAMES.contains(&name) => None,
        Some(name) if KNOWN_PROVIDERS.contains(&name) => {
            return Err(Code::Configuration.with(json!({
                "provider": name,
                "reason": "this provider is not configured",
                "suggestion": "leave `provider` out to use the daemon's own model, or add it to [kaiak] providers \
                               in config.toml",
            })));
        }
        Some(_) => return Err(in_configuration(bad_field("provider", "is not a known provider"))),
    };
    if let Some((name, provider)) = chosen
        && providers_without_key.contains(name)
    {
        return Err(Code::Configuration.with(json!({
            "provider": name,
            "reason": "its key is missing",
            "suggestion": format!(
                "set {} in the daemon's environment",
                provider.api_key_env.as_deref().unwrap_or("the variable")
            ),
        })));
    }
    Ok(Settings {
        model: model.or_else(|| chosen.and_then(|(_, provider)| provider.model.clone())),
        endpoint: chosen.map(|(_, provider)| provider.endpoint.clone()),
        timeout: Duration::from_secs(timeout),
        max_turns: u32::try_from(max_turns).expect("at most 100"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::config::KaiakProvider;

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
    fn the_seeds_example_and_nothing_at_all_are_good() {
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
    fn what_is_wrong_is_named() {
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
