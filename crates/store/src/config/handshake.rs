//! The messages of a daemon that starts to its clients: the readiness line, and `run/daemon.json`.

use std::fs;

use serde::{Deserialize, Serialize};

use super::Home;

/// `run/daemon.json`. It may be out of date: only the lock shows whether a daemon is running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    pub pid: u32,
    pub version: String,
    pub socket: String,
    /// In the format of RFC 3339.
    pub started_at: String,
}

impl DaemonInfo {
    /// Reads the file that the daemon of this data directory wrote when it started.
    pub fn load(home: &Home) -> Option<Self> {
        serde_json::from_slice(&fs::read(home.daemon_info()).ok()?).ok()
    }
}

/// The JSON line that a daemon writes to stdout for the client that started it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readiness {
    Ready {
        info: DaemonInfo,
        /// Warnings for the operator, one sentence each.
        warnings: Vec<String>,
    },
    Failed {
        message: String,
        causes: Vec<String>,
        /// True if one of the user's files is at fault, so that starting the daemon again would fail again.
        config: bool,
    },
}
