//! `~/.kontekst`: the configuration file, the agents, and every path.

pub mod agents;
mod api_keys;
mod bind;
pub mod file;
mod handshake;
mod home;
mod http;
mod kaiak;
pub mod lock;
mod template;
pub(crate) mod toml_file;

pub use agents::{AgentConfig, AgentError, ToolRole};
pub use api_keys::{ApiKeys, MissingKey};
pub use bind::{BadBind, Bind};
pub use file::{PathContext, PathError, write_atomic, write_hint};
pub use handshake::{DaemonInfo, Readiness};
pub use home::{Home, HomeError, NoHome};
pub use http::{HttpApproval, HttpConfig};
pub use kaiak::{KaiakConfig, KaiakProvider};
pub use lock::{Lock, LockError};
pub use toml_file::TomlError;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use toml_file::{fraction, http_url, some_whole, whole};

/// `config.toml`. Source of keys and defaults: architecture seed, "Global Config".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Where gRPC clients on TCP connect.
    pub bind: Bind,
    /// The model server, without a slash at the end.
    #[serde(deserialize_with = "http_url")]
    pub endpoint: String,
    /// Where GGUF files are; [`Config::load`] has put the home directory for a leading `~/`.
    pub model_dir: PathBuf,
    /// Window in tokens.
    #[serde(deserialize_with = "whole::<_, _, 256, MAX_TOKENS>")]
    pub context_size: u32,
    /// Layers on the GPU; absent leaves it to llama-server.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_whole::<_, _, 0, 100_000>")]
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
    /// Models that servers of our own may have loaded at a time.
    #[serde(deserialize_with = "whole::<_, _, 1, 64>")]
    pub max_loaded_models: usize,
    /// Minutes after which a server of our own is stopped that nobody uses; 0 is never.
    #[serde(deserialize_with = "fraction::<_, 525_600>")]
    pub keep_warm_minutes: f64,
    /// MiB on disk for what servers of our own have read of conversations; 0 keeps nothing.
    #[serde(deserialize_with = "whole::<_, _, 0, 16_777_216>")]
    pub kv_cache_mb: u64,
    /// Several model servers with the same models, in the order in which they are tried; stands in for
    /// `endpoint` when there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointConfig>,
    /// Name of the environment variable of the daemon that holds the endpoint's API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Lets `bind` be an address that other machines reach; needs a token.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_remote: bool,
    /// What happens to a conversation that outgrows the window.
    pub compaction: Compaction,
    /// Model calls in one run before it fails.
    #[serde(deserialize_with = "whole::<_, _, 1, 100_000>")]
    pub max_turns: u32,
    pub tools: ToolsConfig,
    /// HTTP and server-sent events.
    pub http: HttpConfig,
    pub kaiak: KaiakConfig,
    pub roz: RozConfig,
    pub workers: WorkersConfig,
    /// Keys in the file that mean nothing here, dotted; worth a warning. Never written.
    #[serde(skip)]
    pub unknown_keys: Vec<String>,
}

/// Token counts cross the wire as `int32`.
const MAX_TOKENS: u64 = i32::MAX as u64;

/// What happens to a conversation that outgrows the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compaction {
    /// The model summarises it, and the conversation goes on from there.
    #[default]
    Summary,
    /// Its oldest part is left out.
    Trim,
}

/// Pins where the model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    Endpoint,
    LlamaServer,
    /// The engine in this process.
    Builtin,
}

/// One of `endpoints`: an address, or a table with its address and its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EndpointFile")]
pub struct EndpointConfig {
    pub url: String,
    /// Name of the environment variable of the daemon that holds its API key.
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

/// `[tools]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsConfig {
    /// Used when a client sends no working directory.
    pub working_dir: PathBuf,
    /// Seconds that one tool call may take.
    #[serde(deserialize_with = "whole::<_, _, 1, 86_400>")]
    pub timeout_seconds: u64,
    pub file: FileToolsConfig,
    pub web: WebToolsConfig,
}

/// `[workers]`: what runs that a model starts may take. A call can ask for less, never for more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkersConfig {
    /// How many of one run work at the same time.
    #[serde(deserialize_with = "whole::<_, _, 1, 16>")]
    pub at_once: usize,
    /// How many one run may start, with those that they start.
    #[serde(deserialize_with = "whole::<_, _, 1, 256>")]
    pub per_run: u32,
    /// Model calls of one worker.
    #[serde(deserialize_with = "whole::<_, _, 1, 100_000>")]
    pub max_turns: u32,
    /// Tokens that the model writes for one worker and those that it starts.
    #[serde(deserialize_with = "whole::<_, _, 1, MAX_TOKENS>")]
    pub max_tokens: u32,
    /// Seconds that one worker may take.
    #[serde(deserialize_with = "whole::<_, _, 1, 86_400>")]
    pub max_seconds: u32,
}

/// `[tools.file]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileToolsConfig {
    #[serde(deserialize_with = "whole::<_, _, 1, MAX_BYTES>")]
    pub max_size_bytes: u64,
}

/// `[tools.web]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebToolsConfig {
    #[serde(deserialize_with = "whole::<_, _, 1, 3_600>")]
    pub timeout_seconds: u64,
    #[serde(deserialize_with = "whole::<_, _, 1, MAX_BYTES>")]
    pub max_response_bytes: u64,
    /// Hosts (`name` or `name:port`) that may be fetched although their address is not public.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_private: Vec<String>,
}

/// `[roz]`: the door for clients that run the tools themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RozConfig {
    /// The agent whose prompt, model and sampling count.
    pub agent: String,
    /// Tools of the daemon that join those of the client; one that the client has, too, is the client's.
    pub daemon_tools: Vec<String>,
    /// The forms in which events are sent.
    pub events: RozEvents,
    pub models: RozModels,
}

impl Default for RozConfig {
    fn default() -> Self {
        Self {
            agent: "default".to_owned(),
            daemon_tools: Vec::new(),
            events: RozEvents::default(),
            models: RozModels::default(),
        }
    }
}

/// The forms in which a Roz session's events are sent: there are two generations of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RozEvents {
    /// Every client finds its own.
    #[default]
    Both,
    First,
    Second,
}

/// `[roz.models]`: what the usual short names stand for; empty is the agent's own model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RozModels {
    pub fast: String,
    pub standard: String,
    pub max: String,
}

/// 1 GiB: both limits bound memory, since tools work on whole files and bodies.
const MAX_BYTES: u64 = 1 << 30;

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: Bind::default(),
            endpoint: "http://127.0.0.1:8080".to_owned(),
            model_dir: "~/models".into(),
            context_size: 4096,
            gpu_layers: None,
            provider: None,
            llama_server: None,
            llama_args: Vec::new(),
            max_loaded_models: 1,
            keep_warm_minutes: 10.0,
            kv_cache_mb: 2048,
            endpoints: Vec::new(),
            api_key_env: None,
            allow_remote: false,
            compaction: Compaction::default(),
            max_turns: 50,
            tools: ToolsConfig::default(),
            http: HttpConfig::default(),
            kaiak: KaiakConfig::default(),
            roz: RozConfig::default(),
            workers: WorkersConfig::default(),
            unknown_keys: Vec::new(),
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

impl Default for WorkersConfig {
    /// No source names figures. These let a worker read some files and write a report, on a machine with one
    /// slot: two at once keep the model busy while a tool of one runs.
    fn default() -> Self {
        Self { at_once: 2, per_run: 8, max_turns: 20, max_tokens: 16_384, max_seconds: 600 }
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

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    File(#[from] TomlError),
    /// `bind` names an address that other machines reach, and `allow_remote` is not set.
    #[error("{}: `bind` is {bind}, which other machines can reach, and `allow_remote` is not true", path.display())]
    Remote { path: PathBuf, bind: Bind },
}

impl Config {
    /// Reads `config.toml`; on first use creates the data directory and the file with all defaults.
    ///
    /// Keys that the file leaves out keep their defaults. Keys that mean nothing are in `unknown`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a file that cannot be understood in full: it is never replaced by defaults.
    pub fn load(home: &Home) -> Result<Self, ConfigError> {
        home.create()?;
        let path = home.config();
        file::create_atomic(&path, template::CONFIG.as_bytes()).map_err(TomlError::Path)?;
        let (mut config, unknown): (Self, _) = toml_file::read(&path, template::KEYS)?;
        config.unknown_keys = unknown;
        for dir in
            [Some(&mut config.model_dir), Some(&mut config.tools.working_dir), config.llama_server.as_mut()]
                .into_iter()
                .flatten()
        {
            *dir = home::expand(dir);
        }
        if config.bind.is_remote() && !config.allow_remote {
            return Err(ConfigError::Remote { path, bind: config.bind });
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests;
