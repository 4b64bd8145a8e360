//! `[http]`: the door for scripts and browsers.

use serde::{Deserialize, Serialize};

use super::Bind;

/// Where it listens and what it lets in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpConfig {
    /// Off until set. An address that other machines reach needs `allow_remote` and a token.
    #[serde(deserialize_with = "off_when_blank")]
    pub listen: Bind,
    /// What becomes of tool calls that want approval.
    pub approval: HttpApproval,
    /// Send CORS headers. Source: Kolosal seed, "CORS".
    pub cors: bool,
    /// Origins, such as `http://localhost:3000`, whose pages may use the door without the token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// Further names of this machine that a `Host` header may have, without the port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: Bind::Off,
            approval: HttpApproval::default(),
            cors: true,
            origins: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

/// [`Bind`] of its own has the gRPC port for a blank.
fn off_when_blank<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bind, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() { Ok(Bind::Off) } else { text.parse().map_err(serde::de::Error::custom) }
}

/// Who approves the calls of runs over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpApproval {
    /// All calls of that run, within its working directory, that no tool warns of. Source: Kolosal seed, "Tool
    /// Calls and Approval Mode".
    #[default]
    Auto,
    /// Those that only read.
    ReadOnly,
    /// A person, with `kontekst approvals` or on the page.
    Ask,
}
