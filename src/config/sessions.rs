//! `[sessions]`: which session a command continues.

use serde::{Deserialize, Serialize};

use super::{Config, Home, file::read_text};

/// The longest `config.toml` that is looked through, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// `[sessions]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionsConfig {
    pub active: ActiveSession,
}

/// The place for which there is one active session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActiveSession {
    /// One for all directories.
    #[default]
    Global,
    /// One for each working directory.
    Directory,
}

impl ActiveSession {
    /// Reads the setting for a client. Every run asks for it, so `config.toml` is parsed only if it has the word. A file with
    /// a mistake counts as one without the setting, because the daemon reports it.
    pub fn read(home: &Home) -> Self {
        let text = read_text(&home.config(), MAX_BYTES).unwrap_or_default();
        let has_word = |line: &str| line.split('#').next().is_some_and(|line| line.contains("directory"));
        if !text.lines().any(has_word) {
            return Self::default();
        }
        Config::read(home).map(|config| config.sessions.active).unwrap_or_default()
    }
}
