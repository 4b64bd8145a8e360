//! The model servers to use: the keys `provider` and `endpoints`.

use serde::{Deserialize, Serialize};

use super::toml_file::http_url;

/// A kind of model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    Endpoint,
    LlamaServer,
    /// The inference engine in the daemon itself.
    Builtin,
}

/// An entry of `endpoints`: an address, or a table with an address and a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EndpointFile")]
pub struct EndpointConfig {
    pub url: String,
    /// The environment variable of the daemon that has its API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an http:// or https:// address, or { url, api_key_env }")]
enum EndpointFile {
    Url(#[serde(deserialize_with = "http_url")] String),
    #[serde(rename_all = "snake_case")]
    Table {
        #[serde(deserialize_with = "http_url")]
        url: String,
        #[serde(default)]
        api_key_env: Option<String>,
    },
}

impl From<EndpointFile> for EndpointConfig {
    fn from(file: EndpointFile) -> Self {
        match file {
            EndpointFile::Url(url) => Self { url, api_key_env: None },
            EndpointFile::Table { url, api_key_env } => Self { url, api_key_env },
        }
    }
}
