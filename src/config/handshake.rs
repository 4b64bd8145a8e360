//! What a daemon tells its clients when it starts: the readiness line, and `run/daemon.json`.

use std::fs;

use serde::{Deserialize, Serialize};

use super::Home;

/// `run/daemon.json`: a hint for clients and people. Only the lock tells whether a daemon runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    pub pid: u32,
    pub version: String,
    pub socket: String,
    /// RFC 3339.
    pub started_at: String,
}

impl DaemonInfo {
    /// Reads what the daemon of this data directory wrote when it started.
    pub fn load(home: &Home) -> Option<Self> {
        serde_json::from_slice(&fs::read(home.daemon_info()).ok()?).ok()
    }
}

/// The JSON line that a daemon writes to stdout for the client that started it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readiness {
    Ready(DaemonInfo),
    Failed {
        message: String,
        causes: Vec<String>,
        /// One of the user's files is at fault, so starting the daemon again would fail again.
        config: bool,
    },
}
