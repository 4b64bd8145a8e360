//! `[workers]`: the limits of subagents.

use serde::{Deserialize, Serialize};

use super::{MAX_TOKENS, toml_file::integer};

/// `[workers]`. A `spawn_worker` call can lower a limit, but not raise it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkersConfig {
    /// The maximum number of subagents of one run that work at the same time.
    #[serde(deserialize_with = "integer::<_, _, 1, 16>")]
    pub at_once: usize,
    /// The maximum number of subagents of one run, including those that subagents start.
    #[serde(deserialize_with = "integer::<_, _, 1, 256>")]
    pub per_run: u32,
    /// The maximum number of turns of a subagent.
    #[serde(deserialize_with = "integer::<_, _, 1, 100_000>")]
    pub max_turns: u32,
    /// The maximum number of tokens that the model writes for a subagent and those that it starts.
    #[serde(deserialize_with = "integer::<_, _, 1, MAX_TOKENS>")]
    pub max_tokens: u32,
    /// The maximum duration of a subagent, in seconds.
    #[serde(deserialize_with = "integer::<_, _, 1, 86_400>")]
    pub max_seconds: u32,
}

impl Default for WorkersConfig {
    /// The seeds give no values. With these, a subagent can read some files and write a report. On a machine with one
    /// slot, two subagents keep the model busy while a tool of one of them runs.
    fn default() -> Self {
        Self { at_once: 2, per_run: 8, max_turns: 20, max_tokens: 16_384, max_seconds: 600 }
    }
}
