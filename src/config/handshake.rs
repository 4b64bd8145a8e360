//! What a client and the daemon it starts agree on: the readiness line and `run/daemon.json`.

use std::fs;

use serde::{Deserialize, Serialize};

use super::Home;

/// `run/daemon.json`: a hint for clients and people. The lock, not this file, says whether a daemon lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    pub pid: u32,
    pub version: String,
    pub socket: String,
    /// RFC 3339.
    pub started_at: String,
}

impl DaemonInfo {
    /// What the daemon of this home wrote when it started, if that can be read.
    pub fn load(home: &Home) -> Option<Self> {
        serde_json::from_slice(&fs::read(home.daemon_info()).ok()?).ok()
    }
}

/// One JSON line on the stdout of a daemon that a client started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readiness {
    Ready(DaemonInfo),
    Failed {
        message: String,
        causes: Vec<String>,
        /// A file of the user's is at fault, so trying again is of no use.
        config: bool,
    },
}
