//! `[daemon]`: how long a daemon runs that a command has started.

use serde::{Deserialize, Serialize};

use super::toml_file::number;

/// `[daemon]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonConfig {
    /// The minutes without a client or a run after which the daemon exits, if a command started it. 0 never does.
    #[serde(deserialize_with = "number::<_, 525_600>")]
    pub idle_exit_minutes: f64,
}

impl Default for DaemonConfig {
    /// An idle daemon takes a few megabytes and no processor time, and the next command waits some 60 ms for a new one,
    /// so neither a short time nor a long one costs much. An hour spares the wait to whoever works with it.
    fn default() -> Self {
        Self { idle_exit_minutes: 60.0 }
    }
}
