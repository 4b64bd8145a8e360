//! `~/.kontekst`: the configuration file, the agents, and every path.

mod home;

pub use home::{Home, NoHome};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `config.toml`. Source of keys and defaults: architecture seed, "Global Config".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Where gRPC clients on TCP connect. `:PORT` is loopback; empty turns TCP off.
    pub bind: String,
    /// The model server.
    pub endpoint: String,
    /// Where GGUF files are. A leading `~/` is the home directory.
    pub model_dir: PathBuf,
    /// Window in tokens.
    pub context_size: u32,
    /// Layers on the GPU; absent leaves it to llama-server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_layers: Option<u32>,
    /// Pins where the model runs; absent tries in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderKind>,
    /// The `llama-server` binary; absent looks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llama_server: Option<PathBuf>,
    /// Arguments added at the end of the `llama-server` command line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub llama_args: Vec<String>,
    /// Name of the environment variable of the daemon that holds the endpoint's API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Lets `bind` be an address that other machines reach; needs a token.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_remote: bool,
    /// Model calls in one run before it fails.
    pub max_turns: u32,
    pub tools: ToolsConfig,
}

/// Pins where the model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    Endpoint,
    LlamaServer,
}

/// `[tools]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsConfig {
    /// Used when a client sends no working directory.
    pub working_dir: PathBuf,
    /// Seconds that one tool call may take.
    pub timeout_seconds: u64,
    pub file: FileToolsConfig,
    pub web: WebToolsConfig,
}

/// `[tools.file]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileToolsConfig {
    pub max_size_bytes: u64,
}

/// `[tools.web]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebToolsConfig {
    pub timeout_seconds: u64,
    pub max_response_bytes: u64,
    /// Hosts (`name` or `name:port`) that may be fetched although their address is not public.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_private: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: ":50051".to_owned(),
            endpoint: "http://127.0.0.1:8080".to_owned(),
            model_dir: "~/models".into(),
            context_size: 4096,
            gpu_layers: None,
            provider: None,
            llama_server: None,
            llama_args: Vec::new(),
            api_key_env: None,
            allow_remote: false,
            max_turns: 50,
            tools: ToolsConfig::default(),
        }
    }
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            working_dir: PathBuf::new(),
            timeout_seconds: 120,
            file: FileToolsConfig::default(),
            web: WebToolsConfig::default(),
        }
    }
}

impl Default for FileToolsConfig {
    fn default() -> Self {
        Self { max_size_bytes: 10_485_760 }
    }
}

impl Default for WebToolsConfig {
    fn default() -> Self {
        Self { timeout_seconds: 30, max_response_bytes: 5_242_880, allow_private: Vec::new() }
    }
}
