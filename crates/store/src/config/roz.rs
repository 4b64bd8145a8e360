//! `[roz]`: the Roz door.

use serde::{Deserialize, Serialize};

/// `[roz]`: settings for clients that run the tools themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RozConfig {
    /// The agent whose prompt, model and sampling settings are used.
    pub agent: String,
    /// Tools of the daemon that are offered in addition to the client's. A client's tool replaces one of the same name.
    pub daemon_tools: Vec<String>,
    pub events: RozEvents,
    pub models: RozModels,
}

impl Default for RozConfig {
    fn default() -> Self {
        Self {
            agent: "default".to_owned(),
            daemon_tools: Vec::new(),
            events: RozEvents::default(),
            models: RozModels::default(),
        }
    }
}

/// The form of the events of a session. There are two generations of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RozEvents {
    /// Sends both forms, so that every client finds its own.
    #[default]
    Both,
    First,
    Second,
}

/// `[roz.models]`: the models for the short names that clients use. An empty text stands for the agent's own model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RozModels {
    pub fast: String,
    pub standard: String,
    pub max: String,
}
