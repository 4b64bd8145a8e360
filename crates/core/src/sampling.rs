//! The settings with which a model chooses the next token.

use serde::{Deserialize, Serialize};

/// The sampling settings of an agent. An absent setting is not sent, except `max_tokens`, which has a default.
///
/// Source: architecture seed, "Per-Agent Config".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

impl Sampling {
    /// Replaces each setting that is present in `other`.
    pub fn overlay(&mut self, other: &Self) {
        self.temperature = other.temperature.or(self.temperature);
        self.top_p = other.top_p.or(self.top_p);
        self.top_k = other.top_k.or(self.top_k);
        self.repeat_penalty = other.repeat_penalty.or(self.repeat_penalty);
        self.max_tokens = other.max_tokens.or(self.max_tokens);
    }

    /// Returns the maximum number of tokens of one answer: `max_tokens`, or 4096 if it is absent.
    pub fn reply_limit(&self) -> u32 {
        self.max_tokens.unwrap_or(4096)
    }
}
