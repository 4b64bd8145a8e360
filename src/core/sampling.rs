//! How the next token is chosen.

use serde::{Deserialize, Serialize};

/// The sampling keys of an agent. An absent key is not sent, except `max_tokens`.
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
    /// Tokens that one answer may take: 4096 unless the agent says otherwise.
    pub fn reply_limit(&self) -> u32 {
        self.max_tokens.unwrap_or(4096)
    }
}
