//! `[http]`: settings of the HTTP door, for scripts and browsers.

use serde::{Deserialize, Serialize};

use super::Bind;

/// `[http]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpConfig {
    /// The address to listen on. One that other machines can reach needs `allow_remote`, and clients there need the token.
    #[serde(deserialize_with = "off_when_blank")]
    pub listen: Bind,
    /// The policy that decides on tool calls.
    pub approval: HttpApproval,
    /// True if runs over HTTP may offer `run_command`.
    pub commands: bool,
    /// True if responses have CORS headers. Source: Kolosal seed, "CORS".
    pub cors: bool,
    /// Origins, such as `http://localhost:3000`, whose pages need no token.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// More host names that a `Host` header may have, without the port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: Bind::Off,
            approval: HttpApproval::default(),
            commands: false,
            cors: true,
            origins: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

/// Reads an address. A blank text means [`Bind::Off`] here, while [`Bind`] parses it as the default gRPC port.
fn off_when_blank<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bind, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() { Ok(Bind::Off) } else { text.parse().map_err(serde::de::Error::custom) }
}

/// The policy that decides on the tool calls of runs over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpApproval {
    /// The daemon denies calls with a caution from their tool and approves all others.
    ///
    /// Source: Kolosal seed, "Tool Calls and Approval Mode".
    #[default]
    Auto,
    /// The daemon approves calls that only read, and denies the others.
    ReadOnly,
    /// A person decides, with `kontekst approvals` or on the web page.
    Ask,
}
