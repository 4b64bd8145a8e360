//! Every value that counts, and where it comes from.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use kontekst_core::Environment;
use kontekst_store::config::{
    Config, Home, agents,
    file::read_text,
    inspect::{FileKind, MAX_FILE, line_of},
};

use super::key::Key;

use crate::cli::{error::CliError, working_dir::short_dir};

/// The variables that take the place of a key or have none. Those that hold secrets are not here.
const VARIABLES: [&str; 4] = ["KONTEKST_HOME", "KONTEKST_PORTS", "KONTEKST_LOG", "KONTEKST_HUB"];

/// A value that counts.
pub(super) struct Setting {
    pub(super) key: String,
    /// `None` if the key is absent: the model, its server or the machine decides.
    pub(super) value: Option<toml::Value>,
    pub(super) source: Source,
}

/// The place that a value comes from.
pub(super) enum Source {
    Default,
    File { path: PathBuf, line: usize },
    Environment(&'static str),
}

impl Source {
    pub(super) fn describe(&self, home: &Home) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File { path, line } => format!("{}:{line}", short_dir(path, home)),
            Self::Environment(name) => format!("${name}"),
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Self::Default => json!({"from": "default"}),
            Self::File { path, line } => json!({"from": "file", "file": path, "line": line}),
            Self::Environment(name) => json!({"from": "environment", "variable": name}),
        }
    }
}

impl Setting {
    pub(super) fn to_json(&self) -> Json {
        let mut json = self.source.to_json();
        json["key"] = self.key.as_str().into();
        json["value"] = serde_json::to_value(&self.value).unwrap_or_default();
        json
    }
}

/// Returns all settings: the keys of config.toml, those that agents set, and the variables that are set.
///
/// # Errors
///
/// config.toml cannot be used.
pub(super) fn settings(home: &Home, environment: &Environment) -> Result<Vec<Setting>, CliError> {
    let config = toml::Value::try_from(Config::read(home)?)
        .map_err(|error| CliError::failed("cannot show the configuration").cause(error.to_string()))?;
    let text = text_of(&home.config());
    let global = FileKind::Global.keys().iter().map(|key| Setting {
        key: (*key).to_owned(),
        value: value_at(&config, key).cloned(),
        source: source(&home.config(), &text, key),
    });
    let mut settings: Vec<Setting> = global.map(|setting| overridden(setting, environment)).collect();
    for name in agents::names(home) {
        let path = home.agents().join(name.as_str()).join("config.toml");
        settings.extend(of_agent(&path, &format!("agents.{name}.")));
    }
    settings.extend(VARIABLES.into_iter().filter_map(|name| {
        let value = Some(environment.text(name)?.into());
        Some(Setting { key: name.to_owned(), value, source: Source::Environment(name) })
    }));
    Ok(settings)
}

/// Returns one setting.
///
/// # Errors
///
/// config.toml cannot be used.
pub(super) fn setting(key: &Key, home: &Home, environment: &Environment) -> Result<Setting, CliError> {
    let text = text_of(&key.path);
    let source = source(&key.path, &text, &key.key);
    let cannot_read = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("`{}` cannot be read", key.path.display())).cause(error.to_string())
    };
    let all = match key.kind {
        FileKind::Global => {
            toml::Value::try_from(Config::read(home)?).map_err(|error| cannot_read(&error))?
        }
        FileKind::Agent => {
            let table: toml::Table = toml::from_str(&text).map_err(|error| cannot_read(&error.message()))?;
            toml::Value::Table(table)
        }
    };
    let found = Setting { key: key.key.clone(), value: value_at(&all, &key.key).cloned(), source };
    Ok(overridden(found, environment))
}

/// Returns the keys that are in the file of an agent. A file with a mistake has none.
fn of_agent(path: &Path, prefix: &str) -> Vec<Setting> {
    let text = text_of(path);
    let Ok(table) = toml::from_str::<toml::Table>(&text) else { return Vec::new() };
    let table = toml::Value::Table(table);
    let keys = FileKind::Agent.keys().iter();
    keys.filter_map(|key| {
        let value = Some(value_at(&table, key)?.clone());
        Some(Setting { key: format!("{prefix}{key}"), value, source: source(path, &text, key) })
    })
    .collect()
}

/// Returns the value of the variable that stands in for an absent `llama_server`.
fn overridden(setting: Setting, environment: &Environment) -> Setting {
    const BINARY: &str = "KONTEKST_LLAMA_SERVER";
    match environment.text(BINARY).filter(|_| setting.key == "llama_server" && setting.value.is_none()) {
        Some(value) => Setting { value: Some(value.into()), source: Source::Environment(BINARY), ..setting },
        None => setting,
    }
}

fn source(path: &Path, text: &str, key: &str) -> Source {
    match line_of(text, key) {
        Some(line) => Source::File { path: path.to_owned(), line },
        None => Source::Default,
    }
}

fn text_of(path: &Path) -> String {
    read_text(path, MAX_FILE).unwrap_or_default()
}

fn value_at<'a>(value: &'a toml::Value, key: &str) -> Option<&'a toml::Value> {
    key.split('.').try_fold(value, |value, part| value.get(part))
}
