//! `[kaiak]`: how editors are served by `kontekst rpc`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::toml_file::{http_url, whole};
use crate::core::Name;

/// `[kaiak]`. Source of the figures: the Kaiak seed's limits, and the 300 seconds of its example interaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KaiakConfig {
    /// The agent that fixes what editors report.
    pub agent: Name,
    /// Sessions that may be open at a time.
    #[serde(deserialize_with = "whole::<_, _, 1, 1000>")]
    pub max_sessions: usize,
    /// Seconds after which a question to the user counts as answered with no.
    #[serde(deserialize_with = "whole::<_, _, 1, 86_400>")]
    pub approval_timeout_seconds: u64,
    /// What clients may name as `provider`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, KaiakProvider>,
}

/// `[kaiak.providers.NAME]`: a model server that a client may choose by this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KaiakProvider {
    #[serde(deserialize_with = "http_url")]
    pub endpoint: String,
    /// The model of a client that names none; absent is the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of the environment variable of the daemon that holds its API key. Clients send no keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
}

impl Default for KaiakConfig {
    fn default() -> Self {
        Self {
            agent: super::agents::DEFAULT.parse().expect("a good name"),
            max_sessions: 10,
            approval_timeout_seconds: 300,
            providers: BTreeMap::new(),
        }
    }
}
