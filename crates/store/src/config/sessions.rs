//! `[sessions]`: which session a command continues.

use serde::{Deserialize, Serialize};

use super::{Config, Home};

/// `[sessions]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionsConfig {
    pub(crate) active: ActiveSession,
}

/// The place for which there is one active session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActiveSession {
    /// One for all directories.
    #[default]
    Global,
    /// One for each working directory.
    Directory,
}

impl ActiveSession {
    /// Reads the setting for a client. A file with a mistake counts as one without the setting, because the daemon reports it.
    pub(crate) fn read(home: &Home) -> Self {
        Config::read_for_client(home, "directory").sessions.active
    }
}
