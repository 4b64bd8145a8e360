//! Who answers: a server that is there, one of our own, or the engine in this process.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    Backend, Models, NoServer, Progress, Provider, ProviderError, ServerStatus, Wanted,
    builtin::{self, NotOpened, OpenModels, Which},
    endpoint::Endpoint,
    fleet::Fleet,
    kv::KvFiles,
    llama::{Link, Probe, Timing, probe},
    model_file::{NoFile, model_file, models},
    supervisor::{Settings, Supervisor},
};
use crate::{
    config::{Config, Home, ProviderKind},
    core::Cancel,
};

/// How long `status` may wait: for two requests or for a connection that is not made.
const STATUS: Duration = Duration::from_millis(1500);

/// Models of a server that are looked at.
const NAMES: usize = 1024;

/// Servers of agents that are remembered; one more and all are looked for again.
const NAMED: usize = 64;

/// What the router takes from the process it lives in.
#[derive(Clone, Debug, Default)]
pub struct ProcessEnv {
    /// `$PATH`.
    pub search_path: Option<OsString>,
    /// `$KONTEKST_LLAMA_SERVER`.
    pub llama_server: Option<PathBuf>,
    /// The value of the variable that `api_key_env` names.
    pub api_key: Option<String>,
    /// The values of the variables that `endpoints` names, by the variables' names.
    pub api_keys: Vec<(String, String)>,
    /// An executable that takes the role [`super::supervisor::exec::ROLE`]: this one.
    pub launcher: Option<PathBuf>,
    /// The data directory, whose daemon we are; absent keeps nothing on disk.
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
    named: Mutex<HashMap<String, Arc<[Endpoint]>>>,
    keys: HashMap<String, String>,
    /// Somebody has said where a server is.
    is_told: bool,
    supervisor: Arc<Supervisor>,
    in_process: Arc<OpenModels>,
    timing: Timing,
}

impl Router {
    pub fn new(config: &Config, around: ProcessEnv) -> Self {
        Self::with_timing(config, around, Timing::default())
    }

    /// As [`Router::new`], with other limits than the usual ones.
    pub fn with_timing(config: &Config, around: ProcessEnv, timing: Timing) -> Self {
        let mut keys: HashMap<String, String> = HashMap::new();
        keys.extend(around.api_key.map(|key| (base(&config.endpoint), key)));
        for endpoint in &config.endpoints {
            let key = endpoint.api_key_env.as_ref().and_then(|name| {
                around.api_keys.iter().find_map(|(known, key)| (known == name).then(|| key.clone()))
            });
            keys.extend(key.map(|key| (base(&endpoint.url), key)));
        }
        for provider in config.kaiak.providers.values() {
            let key = provider.api_key_env.as_ref().and_then(|name| {
                around.api_keys.iter().find_map(|(known, key)| (known == name).then(|| key.clone()))
            });
            if let Some(key) = key {
                keys.entry(base(&provider.endpoint)).or_insert(key);
            }
        }
        let mut urls: Vec<&str> = config.endpoints.iter().map(|endpoint| endpoint.url.as_str()).collect();
        if urls.is_empty() {
            urls.push(&config.endpoint);
        }
        let endpoints =
            urls.iter().map(|url| Endpoint::new(url, keys.get(&base(url)).cloned(), timing)).collect();
        let keep_warm = (config.keep_warm_minutes > 0.0)
            .then(|| Duration::from_secs_f64(config.keep_warm_minutes * 60.0));
        let in_process = OpenModels::new(builtin::Settings {
            context_size: config.context_size,
            max_loaded: config.max_loaded_models,
            keep_warm,
        });
        let settings = Settings {
            configured: config.llama_server.clone(),
            from_environment: around.llama_server,
            search_path: around.search_path,
            model_dir: config.model_dir.clone(),
            context_size: config.context_size,
            gpu_layers: config.gpu_layers,
            extra: config.llama_args.clone(),
            endpoint: config.endpoint.clone(),
            launcher: around.launcher,
            max_loaded: config.max_loaded_models,
            keep_warm,
            kv: around.home.as_ref().and_then(|home| KvFiles::new(home, config.kv_cache_mb << 20)),
            run_dir: around.home.as_ref().map(Home::run),
        };
        Self {
            pin: config.provider,
            model_dir: config.model_dir.clone(),
            endpoints,
            named: Mutex::default(),
            keys,
            is_told: !config.endpoints.is_empty() || config.endpoint != Config::default().endpoint,
            supervisor: Supervisor::new(settings, timing),
            in_process,
            timing,
        }
    }

    /// The provider at one of `endpoints`, if something there answers as a model server does.
    fn at(
        endpoints: &Arc<[Endpoint]>,
        model: &str,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        match &**endpoints {
            [only] => Ok(only.open(model, cancel, sink)?),
            _ => Ok(Arc::new(Fleet::open(endpoints, model, cancel, sink)?)),
        }
    }

    /// The server that an agent names; `None` for the usual ones.
    fn named(&self, url: &str) -> Option<Arc<[Endpoint]>> {
        let url = base(url);
        if let [only] = &*self.endpoints
            && only.link().base() == url
        {
            return None;
        }
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= NAMED && !named.contains_key(&url) {
            named.clear();
        }
        let endpoint = named
            .entry(url.clone())
            .or_insert_with(|| Arc::new([Endpoint::new(&url, self.keys.get(&url).cloned(), self.timing)]));
        Some(Arc::clone(endpoint))
    }

    /// What this daemon runs itself: a llama-server, or the engine in this process.
    fn of_our_own(
        &self,
        model: &str,
        absent: Option<&ProviderError>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        if model == builtin::NAME && self.pin.is_none_or(|pin| pin == ProviderKind::Builtin) {
            return self.built_in(model, None, cancel, sink);
        }
        let missing = |fact: String, hint: String| {
            let fact = match absent {
                Some(error) => format!("{} and {fact}", self.absence(error)),
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
                        tracing::debug!("{}: a llama-server of our own it is", self.absence(error));
                    }
                    let provider = self.supervisor.open(&binary, file, cancel, sink)?;
                    return Ok(provider);
                }
                // One that was named and is not there is not replaced by something else.
                (Err(fact), _) if !self.may_replace() || self.supervisor.is_named() => {
                    return Err(missing(fact, INSTALL.to_owned()));
                }
                _ => {}
            }
        }
        match file {
            Ok(file) => self.in_process(model, &file, absent, cancel, sink),
            Err(NoFile::Absent(_))
                if self.may_replace() || self.pin == Some(ProviderKind::Builtin) && model.is_empty() =>
            {
                self.built_in(model, absent, cancel, sink)
            }
            Err(NoFile::Absent(NoServer { fact, hint }) | NoFile::Unclear(NoServer { fact, hint })) => {
                Err(missing(fact, hint))
            }
        }
    }

    /// The engine may answer where a llama-server cannot.
    fn may_replace(&self) -> bool {
        builtin::AVAILABLE && self.pin.is_none()
    }

    /// A file, run by the engine in this process; the built-in model in place of one that it does not know.
    fn in_process(
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
            Err(NotOpened::Unknown(why)) if self.may_replace() => {
                tracing::info!(file = %file.display(), why, "the built-in engine cannot run it");
                self.built_in(model, absent, cancel, sink)
            }
            Err(NotOpened::Unknown(fact)) => {
                Err(ProviderError::NoServer(NoServer { fact, hint: INSTALL.to_owned() }))
            }
        }
    }

    /// The model that is part of the program, in place of `model`.
    fn built_in(
        &self,
        model: &str,
        absent: Option<&ProviderError>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        if let Some(error @ ProviderError::Status { status: 401 | 403, .. }) = absent {
            return Err(no_server(&self.endpoints, error));
        }
        let mut notice = builtin::notice(&self.better(model));
        if let Some(error) = absent.filter(|_| self.is_told) {
            notice = format!("{}; {notice}", self.absence(error));
        }
        self.in_process.open(&Which::BuiltIn, Some(notice), cancel, sink).map_err(|error| match error {
            NotOpened::Error(error) => error,
            NotOpened::Unknown(fact) => ProviderError::NoServer(NoServer { fact, hint: INSTALL.to_owned() }),
        })
    }

    /// What to do to have a better model than the built-in one, in one command.
    fn better(&self, model: &str) -> String {
        let here = models(&self.model_dir);
        if model_file(&self.model_dir, model).is_ok() {
            return format!("{} needs llama-server: {INSTALL}", super::llama::shown(model));
        }
        match here.first() {
            Some(name) => {
                format!("`kontekst models use {}` has a model answer that is here", super::llama::shown(name))
            }
            None => format!("{PULL} gets a real model"),
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
    fn absence(&self, error: &ProviderError) -> String {
        absence(&self.endpoints, error)
    }
}

/// An address as servers are known by.
fn base(url: &str) -> String {
    Link::new(url, None, Duration::ZERO).base().to_owned()
}

fn absence(endpoints: &[Endpoint], error: &ProviderError) -> String {
    let bases: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.link().base()).collect();
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
    ProviderError::NoServer(NoServer { fact: absence(endpoints, error), hint: hint.to_owned() })
}

impl Models for Router {
    fn open(
        &self,
        wanted: Wanted<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        let Wanted { model, endpoint } = wanted;
        if let Some(named) = endpoint.and_then(|url| self.named(url)) {
            return Self::at(&named, model, cancel, sink).map_err(|error| match error {
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
            match Self::at(&self.endpoints, model, cancel, sink) {
                Ok(provider) => return Ok(provider),
                Err(ProviderError::Cancelled) => return Err(ProviderError::Cancelled),
                Err(error) => Some(error),
            }
        };
        if let (Some(ProviderKind::Endpoint), Some(error)) = (self.pin, &absent) {
            return Err(no_server(&self.endpoints, error));
        }
        self.of_our_own(model, absent.as_ref(), cancel, sink)
    }

    fn names(&self) -> Vec<String> {
        let usual = self.endpoints.iter().find(|endpoint| !endpoint.is_shunned());
        let asked =
            usual.filter(|_| self.pin != Some(ProviderKind::LlamaServer) && !self.supervisor.is_running());
        let served = asked.map(|endpoint| served(&endpoint.link().within(STATUS / 2))).unwrap_or_default();
        let names = if served.is_empty() { models(&self.model_dir) } else { served };
        // What answers where nothing else is there.
        if names.is_empty() && self.may_replace() { vec![builtin::NAME.to_owned()] } else { names }
    }

    fn status(&self) -> ServerStatus {
        if self.pin == Some(ProviderKind::Builtin) {
            return self.in_process_status();
        }
        let running = self.supervisor.running();
        let backend = if running.is_some() { Backend::LlamaServer } else { Backend::Endpoint };
        let (pid, link, model) = running.unwrap_or_else(|| {
            let endpoints = &self.endpoints;
            let endpoint = endpoints.iter().find(|endpoint| !endpoint.is_shunned()).unwrap_or(&endpoints[0]);
            (0, endpoint.link().clone(), endpoint.model().unwrap_or_default())
        });
        // Not `/health`: it says nothing about whose server it is, or whether the key fits.
        let link = link.within(STATUS / 2);
        let found = probe(&link, &model, &Cancel::new(), STATUS / 2);
        let healthy = matches!(found, Ok(Probe::Ready(_) | Probe::Asleep));
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

const INSTALL: &str = if cfg!(target_os = "macos") {
    "install it with `brew install llama.cpp`, or set `endpoint` in config.toml to a server that runs"
} else {
    "install llama.cpp (`brew install llama.cpp`, `apt install llama.cpp-tools` on Debian 14, or a build from \
     https://github.com/ggml-org/llama.cpp/releases), or set `endpoint` in config.toml to a server that runs"
};

/// Gets a model of 2.5 GB, which answers on a machine with 8 GB and no GPU.
const PULL: &str = "`kontekst models pull --use Qwen/Qwen3-4B-GGUF`";

/// The models that a server lists; none when it does not answer.
fn served(link: &Link) -> Vec<String> {
    let Ok((200, body)) = link.ask("/v1/models", None, &Cancel::new(), STATUS / 2) else { return Vec::new() };
    let list = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
    let ids = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    ids.take(NAMES).map(super::llama::shown).collect()
}
