//! Who answers: a server that is there, one of our own, or the engine in this process.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    Backend, ModelSelector, Models, NoServer, Progress, Provider, ProviderError, ServerStatus,
    builtin::{self, NotOpened, OpenModels, Which},
    endpoint::Endpoint,
    failover::FailoverGroup,
    model_file::{ModelFileError, model_file, model_files},
    openai::{KvCacheDir, Probe, ServerClient, Timing, probe},
    supervisor::{Settings, Supervisor},
};
use crate::{
    config::{ApiKeys, Config, Home, ProviderKind},
    core::{Cancel, Environment},
};

/// How long `status` may wait: for two requests or for a connection that is not made.
const STATUS_TIMEOUT: Duration = Duration::from_millis(1500);

/// Models of a server that are looked at.
const MAX_NAMES: usize = 1024;

/// Servers of agents that are remembered; one more and all are looked for again.
const MAX_AGENT_ENDPOINTS: usize = 64;

/// What the router takes from the process that it belongs to.
#[derive(Clone, Debug, Default)]
pub struct ProcessEnv {
    pub environment: Environment,
    /// The executable that takes the role [`super::supervisor::exec::ROLE`]: this program.
    pub launcher: Option<PathBuf>,
    /// The data directory of the daemon. Without one, nothing is kept on disk.
    pub home: Option<Home>,
}

/// Finds or starts the backend of a model: what is healthy at `endpoint`, else a llama-server of our own for the
/// model's file, else the engine in this process for that file, else the built-in model. A pin in the
/// configuration allows only one of them, and an agent may name a server of its own.
pub struct Router {
    pin: Option<ProviderKind>,
    model_dir: PathBuf,
    /// At least one, in the order in which they are tried.
    endpoints: Arc<[Endpoint]>,
    /// Those that agents name, by address. A key goes with an address that the configuration has.
    agent_endpoints: Mutex<HashMap<String, Arc<[Endpoint]>>>,
    keys: HashMap<String, String>,
    /// Somebody has said where a server is.
    has_configured_endpoint: bool,
    supervisor: Arc<Supervisor>,
    in_process: Arc<OpenModels>,
    timing: Timing,
}

impl Router {
    pub fn new(config: &Config, process: ProcessEnv) -> Self {
        Self::with_timing(config, process, Timing::default())
    }

    /// As [`Router::new`], with other limits than the usual ones.
    pub fn with_timing(config: &Config, process: ProcessEnv, timing: Timing) -> Self {
        let mut keys: HashMap<String, String> = HashMap::new();
        for (url, key) in ApiKeys::from_config(config, &process.environment).by_address() {
            keys.entry(base_url(url)).or_insert_with(|| key.to_owned());
        }
        let mut urls: Vec<&str> = config.endpoints.iter().map(|endpoint| endpoint.url.as_str()).collect();
        if urls.is_empty() {
            urls.push(&config.endpoint);
        }
        let endpoints =
            urls.iter().map(|url| Endpoint::new(url, keys.get(&base_url(url)).cloned(), timing)).collect();
        let keep_warm = (config.keep_warm_minutes > 0.0)
            .then(|| Duration::from_secs_f64(config.keep_warm_minutes * 60.0));
        let in_process = OpenModels::new(builtin::Settings {
            context_size: config.context_size,
            max_loaded: config.max_loaded_models,
            keep_warm,
        });
        let settings = Settings {
            configured_binary: config.llama_server.clone(),
            env_binary: process.environment.get("KONTEKST_LLAMA_SERVER").map(PathBuf::from),
            search_path: process.environment.get("PATH").map(OsString::from),
            llama_variables: llama_variables(&process.environment),
            model_dir: config.model_dir.clone(),
            context_size: config.context_size,
            gpu_layers: config.gpu_layers,
            extra_args: config.llama_args.clone(),
            endpoint: config.endpoint.clone(),
            launcher: process.launcher,
            max_loaded: config.max_loaded_models,
            keep_warm,
            kv_cache: process.home.as_ref().and_then(|home| KvCacheDir::new(home, config.kv_cache_mb << 20)),
            run_dir: process.home.as_ref().map(Home::run),
        };
        Self {
            pin: config.provider,
            model_dir: config.model_dir.clone(),
            endpoints,
            agent_endpoints: Mutex::default(),
            keys,
            has_configured_endpoint: !config.endpoints.is_empty()
                || config.endpoint != Config::default().endpoint,
            supervisor: Supervisor::new(settings, timing),
            in_process,
            timing,
        }
    }

    /// The provider at one of `endpoints`, if something there answers as a model server does.
    fn open_endpoint(
        endpoints: &Arc<[Endpoint]>,
        model: &str,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        match &**endpoints {
            [only] => Ok(only.open(model, cancel, sink)?),
            _ => Ok(Arc::new(FailoverGroup::open(endpoints, model, cancel, sink)?)),
        }
    }

    /// The server that an agent names; `None` for the usual ones.
    fn agent_endpoint(&self, url: &str) -> Option<Arc<[Endpoint]>> {
        let url = base_url(url);
        if let [only] = &*self.endpoints
            && only.client().base() == url
        {
            return None;
        }
        let mut named = self.agent_endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= MAX_AGENT_ENDPOINTS && !named.contains_key(&url) {
            named.clear();
        }
        let endpoint = named
            .entry(url.clone())
            .or_insert_with(|| Arc::new([Endpoint::new(&url, self.keys.get(&url).cloned(), self.timing)]));
        Some(Arc::clone(endpoint))
    }

    /// What this daemon runs itself: a llama-server, or the engine in this process.
    fn open_local(
        &self,
        model: &str,
        absent: Option<&ProviderError>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        if model == builtin::NAME && self.pin.is_none_or(|pin| pin == ProviderKind::Builtin) {
            return self.open_built_in(model, None, cancel, sink);
        }
        let missing = |fact: String, hint: String| {
            let fact = match absent {
                Some(error) => format!("{} and {fact}", self.describe_failure(error)),
                None => fact,
            };
            ProviderError::NoServer(NoServer { fact, hint })
        };
        let file = model_file(&self.model_dir, model);
        if self.pin != Some(ProviderKind::Builtin) {
            if let Ok(file) = &file
                && let Some(provider) = self.supervisor.ready(file)
            {
                return Ok(provider);
            }
            match (self.supervisor.binary(), &file) {
                (Ok(binary), Ok(file)) => {
                    if let Some(error) = absent {
                        tracing::debug!("{}: a llama-server of our own it is", self.describe_failure(error));
                    }
                    let provider = self.supervisor.open(&binary, file, cancel, sink)?;
                    return Ok(provider);
                }
                // One that was named and is not there is not replaced by something else.
                (Err(fact), _) if !self.may_fall_back() || self.supervisor.has_pinned_binary() => {
                    return Err(missing(fact, INSTALL_HINT.to_owned()));
                }
                _ => {}
            }
        }
        match file {
            Ok(file) => self.open_in_process(model, &file, absent, cancel, sink),
            Err(ModelFileError::Absent(_))
                if self.may_fall_back() || self.pin == Some(ProviderKind::Builtin) && model.is_empty() =>
            {
                self.open_built_in(model, absent, cancel, sink)
            }
            Err(
                ModelFileError::Absent(NoServer { fact, hint })
                | ModelFileError::Ambiguous(NoServer { fact, hint }),
            ) => Err(missing(fact, hint)),
        }
    }

    /// The engine may answer where a llama-server cannot.
    fn may_fall_back(&self) -> bool {
        builtin::AVAILABLE && self.pin.is_none()
    }

    /// A file, run by the engine in this process; the built-in model in place of one that it does not know.
    fn open_in_process(
        &self,
        model: &str,
        file: &Path,
        absent: Option<&ProviderError>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        match self.in_process.open(&Which::File(file.to_owned()), None, cancel, sink) {
            Ok(provider) => Ok(provider),
            Err(NotOpened::Error(error)) => Err(error),
            Err(NotOpened::Unknown(why)) if self.may_fall_back() => {
                tracing::info!(file = %file.display(), why, "the built-in engine cannot run it");
                self.open_built_in(model, absent, cancel, sink)
            }
            Err(NotOpened::Unknown(fact)) => {
                Err(ProviderError::NoServer(NoServer { fact, hint: INSTALL_HINT.to_owned() }))
            }
        }
    }

    /// The model that is part of the program, in place of `model`.
    fn open_built_in(
        &self,
        model: &str,
        absent: Option<&ProviderError>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        if let Some(error @ ProviderError::Status { status: 401 | 403, .. }) = absent {
            return Err(no_server(&self.endpoints, error));
        }
        let mut notice = builtin::notice(&self.better_model_hint(model));
        if let Some(error) = absent.filter(|_| self.has_configured_endpoint) {
            notice = format!("{}; {notice}", self.describe_failure(error));
        }
        self.in_process.open(&Which::BuiltIn, Some(notice), cancel, sink).map_err(|error| match error {
            NotOpened::Error(error) => error,
            NotOpened::Unknown(fact) => {
                ProviderError::NoServer(NoServer { fact, hint: INSTALL_HINT.to_owned() })
            }
        })
    }

    /// What to do to have a better model than the built-in one, in one command.
    fn better_model_hint(&self, model: &str) -> String {
        let here = model_files(&self.model_dir);
        if model_file(&self.model_dir, model).is_ok() {
            return format!("{} needs llama-server: {INSTALL_HINT}", super::openai::single_line(model));
        }
        match here.first() {
            Some(name) => {
                format!(
                    "`kontekst models use {}` has a model answer that is here",
                    super::openai::single_line(name)
                )
            }
            None => format!("{PULL_COMMAND} gets a real model"),
        }
    }

    fn in_process_status(&self) -> ServerStatus {
        let model = self.in_process.running();
        ServerStatus {
            backend: Backend::Builtin,
            endpoint: String::new(),
            healthy: builtin::AVAILABLE,
            running: model.is_some(),
            pid: if model.is_some() { std::process::id() } else { 0 },
            model: model.unwrap_or_default(),
        }
    }

    /// Why the usual endpoints are of no use, as the first half of a sentence.
    fn describe_failure(&self, error: &ProviderError) -> String {
        describe_failure(&self.endpoints, error)
    }
}

/// Returns the names of the variables that configure a llama-server.
fn llama_variables(environment: &Environment) -> Vec<OsString> {
    let names = environment.names().filter(|name| name.as_encoded_bytes().starts_with(b"LLAMA_"));
    names.map(OsString::from).collect()
}

/// An address as servers are known by.
fn base_url(url: &str) -> String {
    ServerClient::new(url, None, Duration::ZERO).base().to_owned()
}

fn describe_failure(endpoints: &[Endpoint], error: &ProviderError) -> String {
    let bases: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.client().base()).collect();
    let bases = bases.join(" or ");
    match error {
        ProviderError::Unreachable { source, .. } => format!("nothing answers at {bases} ({source})"),
        other => format!("{bases} is of no use ({other})"),
    }
}

fn no_server(endpoints: &[Endpoint], error: &ProviderError) -> ProviderError {
    let hint = match error {
        ProviderError::Status { status: 401 | 403, .. } => {
            "set `api_key_env` in config.toml to the name of a variable that holds its key"
        }
        _ => "start that server, or change `endpoint` or `provider` in config.toml",
    };
    ProviderError::NoServer(NoServer { fact: describe_failure(endpoints, error), hint: hint.to_owned() })
}

impl Models for Router {
    fn open(
        &self,
        wanted: ModelSelector<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        let ModelSelector { model, endpoint } = wanted;
        if let Some(named) = endpoint.and_then(|url| self.agent_endpoint(url)) {
            return Self::open_endpoint(&named, model, cancel, sink).map_err(|error| match error {
                ProviderError::Cancelled => error,
                error => no_server(&named, &error),
            });
        }
        let asked_for = model == builtin::NAME && self.pin.is_none() && builtin::AVAILABLE;
        // Our own child may be what answers at `endpoint`: it is not asked while there is one.
        let ours = matches!(self.pin, Some(ProviderKind::LlamaServer | ProviderKind::Builtin))
            || self.supervisor.is_running()
            || asked_for;
        let absent = if ours {
            None
        } else {
            match Self::open_endpoint(&self.endpoints, model, cancel, sink) {
                Ok(provider) => return Ok(provider),
                Err(ProviderError::Cancelled) => return Err(ProviderError::Cancelled),
                Err(error) => Some(error),
            }
        };
        if let (Some(ProviderKind::Endpoint), Some(error)) = (self.pin, &absent) {
            return Err(no_server(&self.endpoints, error));
        }
        self.open_local(model, absent.as_ref(), cancel, sink)
    }

    fn names(&self) -> Vec<String> {
        let usual = self.endpoints.iter().find(|endpoint| !endpoint.is_unhealthy());
        let asked =
            usual.filter(|_| self.pin != Some(ProviderKind::LlamaServer) && !self.supervisor.is_running());
        let served = asked
            .map(|endpoint| served_models(&endpoint.client().with_connect_timeout(STATUS_TIMEOUT / 2)))
            .unwrap_or_default();
        let names = if served.is_empty() { model_files(&self.model_dir) } else { served };
        // What answers where nothing else is there.
        if names.is_empty() && self.may_fall_back() { vec![builtin::NAME.to_owned()] } else { names }
    }

    fn status(&self) -> ServerStatus {
        if self.pin == Some(ProviderKind::Builtin) {
            return self.in_process_status();
        }
        let running = self.supervisor.running();
        let backend = if running.is_some() { Backend::LlamaServer } else { Backend::Endpoint };
        let (pid, link, model) = running.unwrap_or_else(|| {
            let endpoints = &self.endpoints;
            let endpoint =
                endpoints.iter().find(|endpoint| !endpoint.is_unhealthy()).unwrap_or(&endpoints[0]);
            (0, endpoint.client().clone(), endpoint.model().unwrap_or_default())
        });
        // Not `/health`: it says nothing about whose server it is, or whether the key fits.
        let link = link.with_connect_timeout(STATUS_TIMEOUT / 2);
        let found = probe(&link, &model, &Cancel::new(), STATUS_TIMEOUT / 2);
        let healthy = matches!(found, Ok(Probe::Ready(_) | Probe::NotLoaded));
        if !healthy && pid == 0 && self.in_process.running().is_some() {
            return self.in_process_status();
        }
        ServerStatus { backend, endpoint: link.base().to_owned(), healthy, running: pid != 0, pid, model }
    }

    fn stop(&self) {
        self.supervisor.stop();
        self.in_process.stop();
    }
}

const INSTALL_HINT: &str = if cfg!(target_os = "macos") {
    "install it with `brew install llama.cpp`, or set `endpoint` in config.toml to a server that runs"
} else {
    "install llama.cpp (`brew install llama.cpp`, `apt install llama.cpp-tools` on Debian 14, or a build from \
     https://github.com/ggml-org/llama.cpp/releases), or set `endpoint` in config.toml to a server that runs"
};

/// Gets a model of 2.5 GB, which answers on a machine with 8 GB and no GPU.
const PULL_COMMAND: &str = "`kontekst models pull --use Qwen/Qwen3-4B-GGUF`";

/// The models that a server lists; none when it does not answer.
fn served_models(link: &ServerClient) -> Vec<String> {
    let Ok((200, body)) = link.request("/v1/models", None, &Cancel::new(), STATUS_TIMEOUT / 2) else {
        return Vec::new();
    };
    let list = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
    let ids = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    ids.take(MAX_NAMES).map(super::openai::single_line).collect()
}
