//! `[kaiak]`: settings for editors, which connect with `kontekst rpc`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kontekst_core::Name;

use super::toml_file::{http_url, integer};

/// `[kaiak]`. The default limits are those of the Kaiak seed. Its example interaction has the 300 seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KaiakConfig {
    /// The agent that makes the fixes.
    pub agent: Name,
    /// The maximum number of open sessions.
    #[serde(deserialize_with = "integer::<_, _, 1, 1000>")]
    pub max_sessions: usize,
    /// The seconds after which an unanswered question to the user counts as denied.
    #[serde(deserialize_with = "integer::<_, _, 1, 86_400>")]
    pub approval_timeout_seconds: u64,
    /// True if runs of editors may offer `run_command`. What needs an approval is denied.
    pub commands: bool,
    /// The providers that clients can choose by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, KaiakProvider>,
}

/// `[kaiak.providers.NAME]`: a model server that clients can choose by this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KaiakProvider {
    #[serde(deserialize_with = "http_url")]
    pub endpoint: String,
    /// The model for clients that name none. Without it, they get the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The environment variable of the daemon that has its API key. Clients send no keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
}

impl Default for KaiakConfig {
    fn default() -> Self {
        Self {
            agent: super::agents::DEFAULT.parse().expect("a valid name"),
            max_sessions: 10,
            approval_timeout_seconds: 300,
            commands: false,
            providers: BTreeMap::new(),
        }
    }
}
