//! The process that owns the model, the sessions and the tools.

mod editor_listener;
mod http_listener;
mod listen;
mod log;
mod peer;
mod ready;
mod reflection;
mod signals;
mod socket;

use std::{
    fs, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tonic::{service::RoutesBuilder, transport::Server};

pub use crate::provider::router::ProcessEnv;
use crate::{
    agent::AgentCore,
    config::{
        ApiKeys, Bind, Config, ConfigError, DaemonInfo, Home, HomeError, Lock, LockError, PathError, agents,
        write_hint,
    },
    core::{Cancel, OwnListeners, clock},
    doors::{
        kaiak::KaiakDoor,
        kontekst::{AgentDoor, ApprovalDoor, DaemonDoor, StatusContext},
        roz::RozDoor,
    },
    pb,
    provider::{Models, router::Router},
};
use editor_listener::EditorListener;
use http_listener::HttpListener;
use listen::Listeners;
use socket::SocketFile;

/// Time that runs get to end once the daemon was told to stop; the promise to the outside is ten seconds.
const STOP_LIMIT: Duration = Duration::from_secs(9);

/// A leaving daemon may hold the lock that long.
const LOCK_LIMIT: Duration = Duration::from_secs(12);

/// How the daemon was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By a person or by systemd: logs go to stderr.
    Foreground,
    /// By a client that waits for the readiness line on stdout: logs go to `daemon.log`.
    Spawned,
}

/// Why the daemon could not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("another daemon is running for `{}`", .0.display())]
    Running(PathBuf),
    #[error(transparent)]
    Lock(LockError),
    #[error("cannot listen on `{}`", path.display())]
    Listen { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("the server failed")]
    Serve(#[source] tonic::transport::Error),
}

/// Runs the daemon until it is told to stop.
///
/// In [`Mode::Spawned`], one line on stdout tells the client that it is ready or why not. `listen` replaces the
/// address at which the configuration has HTTP served.
///
/// # Errors
///
/// [`DaemonError`] when it cannot start or its server fails.
pub fn serve(home: &Home, mode: Mode, process: ProcessEnv, listen: Option<Bind>) -> Result<(), DaemonError> {
    let result = start(home, mode, process, listen);
    if let (Err(error), Mode::Spawned) = (&result, mode) {
        ready::announce_failure(error);
    }
    result
}

fn start(home: &Home, mode: Mode, process: ProcessEnv, listen: Option<Bind>) -> Result<(), DaemonError> {
    detach(mode);
    home.create()?;
    let mut config = Config::load(home)?;
    config.http.listen = listen.unwrap_or(config.http.listen);
    let lock = lock(home)?;
    let mut warnings = log::start(home, mode, process.environment.text("KONTEKST_LOG").as_deref());
    agents::create_default(home)?;
    warnings.extend(config.unknown_keys.iter().map(|key| format!("config.toml: unknown key `{key}`")));

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(workers())
        // Each run that waits for its model holds one of these threads; an idle one goes after 10 s.
        .max_blocking_threads(1024)
        .thread_name("kontekst")
        .build()
        .map_err(DaemonError::Runtime)?;
    let keys = ApiKeys::from_config(&config, &process.environment);
    warnings.extend(keys.warnings());
    let keyless = keys.kaiak_providers_without_key();
    let models: Arc<dyn Models> =
        Arc::new(Router::new(&config, ProcessEnv { home: Some(home.clone()), ..process }));
    let own_listeners = OwnListeners::default();
    let core = AgentCore::new(home.clone(), config, Arc::clone(&models), own_listeners.clone());
    let result = runtime.block_on(run(home, mode, &core, warnings, keyless, &own_listeners));

    // In this order: nobody can connect, no run is left, the model server goes, then the lock.
    models.stop();
    if DaemonInfo::load(home).is_none_or(|info| info.pid == std::process::id()) {
        fs::remove_file(home.daemon_info()).ok();
    }
    runtime.shutdown_timeout(Duration::from_millis(200));
    drop(lock);
    result
}

/// Half the cores, at most four: workers only pass messages on, and each that is woken for nothing takes time
/// from the model (one worker instead of two on two cores: 4.1 instead of 4.7 ms for a whole one-shot).
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 4))
}

/// Takes the lock that makes us the daemon. One that is leaving is waited for; one that still answers
/// is there to stay.
fn lock(home: &Home) -> Result<Lock, DaemonError> {
    let deadline = Instant::now() + LOCK_LIMIT;
    loop {
        match Lock::acquire(&home.daemon_lock(), Duration::from_millis(100)) {
            Ok(lock) => return Ok(lock),
            Err(LockError::Held { .. }) => {
                let answers = std::os::unix::net::UnixStream::connect(home.socket()).is_ok();
                if answers || Instant::now() > deadline {
                    return Err(DaemonError::Running(home.root().to_owned()));
                }
            }
            Err(other) => return Err(DaemonError::Lock(other)),
        }
    }
}

/// Lets go of the client that started us: its terminal, its directory, its file modes.
fn detach(mode: Mode) {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    if mode == Mode::Spawned {
        // Fails only for a process group leader, which a spawned child is not.
        rustix::process::setsid().ok();
        rustix::process::chdir("/").ok();
    }
}

async fn run(
    home: &Home,
    mode: Mode,
    core: &AgentCore,
    mut warnings: Vec<String>,
    keyless: Vec<String>,
    own_listeners: &OwnListeners,
) -> Result<(), DaemonError> {
    let stop = Cancel::new();
    signals::stop_on_signals(&stop).map_err(DaemonError::Runtime)?;
    let editors = EditorListener::bind(home)?;
    warnings.extend(daemon_tools_warnings(core).await);
    let mut listeners = Listeners::unix(home)?;
    let bind = match listeners.tcp(core.config(), home, own_listeners) {
        Ok(Some(address)) => address,
        Ok(None) => String::new(),
        Err(warning) => {
            tracing::warn!("{warning}");
            warnings.push(warning);
            String::new()
        }
    };
    let http = HttpListener::bind(core, core.config().http.listen, own_listeners).unwrap_or_else(|warning| {
        tracing::warn!("{warning}");
        warnings.push(warning);
        None
    });
    let started_at = SystemTime::now();
    let info = DaemonInfo {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        socket: home.socket().display().to_string(),
        started_at: clock::rfc3339(started_at),
    };
    let json = serde_json::to_vec_pretty(&info).expect("strings and numbers");
    write_hint(&home.daemon_info(), &json)?;
    let vitals = StatusContext {
        bind: if bind.is_empty() { Bind::Off.to_string() } else { bind.clone() },
        http: http.as_ref().map(|http| http.address.to_string()).unwrap_or_default(),
        socket: info.socket.clone(),
        started: Instant::now(),
        started_at,
        warnings,
        stop: stop.clone(),
    };
    tracing::info!(pid = info.pid, socket = info.socket, bind, http = vitals.http, "listening");
    ready::announce_ready(mode, &info);

    let watchdog = {
        let (core, stop) = (core.clone(), stop.clone());
        tokio::spawn(async move {
            stop.cancelled().await;
            core.stop();
        })
    };
    let http = http.map(|http| tokio::spawn(http.serve(core.clone())));
    let editors = tokio::spawn(editors.serve(KaiakDoor::new(core.clone(), keyless), stop.clone()));
    let orphaned =
        tokio::spawn(stop_when_unreachable(listeners.socket().clone(), core.clone(), stop.clone()));
    let auth = listeners.auth();
    let server = Server::builder()
        .initial_stream_window_size(4 * 1024 * 1024)
        .initial_connection_window_size(8 * 1024 * 1024)
        .max_concurrent_streams(1024)
        // A prompt of a megabyte in one frame instead of 64.
        .max_frame_size(1024 * 1024)
        .layer(tonic::service::InterceptorLayer::new(auth))
        .add_routes(routes(core, vitals).await)
        .serve_with_incoming_shutdown(listeners.accept(&stop), stop.cancelled());
    let served = async {
        let result = server.await;
        editors.await.ok();
        result
    };
    let result = tokio::select! {
        result = served => result.map_err(DaemonError::Serve),
        () = stop_limit_reached(&stop) => {
            tracing::warn!("some clients did not let go in time");
            Ok(())
        }
    };
    watchdog.abort();
    orphaned.abort();
    core.stop();
    if let Some(http) = http {
        // What it streams has heard that it is over.
        tokio::time::timeout(Duration::from_secs(1), http).await.ok();
    }
    result
}

/// What is wrong with `[roz] daemon_tools`.
async fn daemon_tools_warnings(core: &AgentCore) -> Vec<String> {
    let config = core.config();
    let wanted = &config.roz.daemon_tools;
    if wanted.is_empty() {
        return Vec::new();
    }
    let known = core.daemon_tools().await;
    let unknown = wanted.iter().filter(|name| known.iter().all(|tool| tool.name != **name));
    unknown.map(|name| format!("config.toml: `daemon_tools` names `{name}`, which is no tool")).collect()
}

/// Without its socket file no client finds this daemon, and the next one starts another: this one finishes what it is
/// doing and goes. It does not bind again, because the lock file may be gone with the socket.
async fn stop_when_unreachable(socket: SocketFile, core: AgentCore, stop: Cancel) {
    socket.removed().await;
    if stop.is_cancelled() {
        return;
    }
    tracing::warn!("the socket file was removed: leaving when no run is going");
    while core.active_runs() > 0 {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    stop.cancel();
}

/// Resolves [`STOP_LIMIT`] after `stop` is given.
async fn stop_limit_reached(stop: &Cancel) {
    stop.cancelled().await;
    tokio::time::sleep(STOP_LIMIT).await;
}

async fn routes(core: &AgentCore, vitals: StatusContext) -> tonic::service::Routes {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<pb::agent_service_server::AgentServiceServer<AgentDoor>>().await;
    health.set_serving::<pb::roz::agent_service_server::AgentServiceServer<RozDoor>>().await;
    health.set_serving::<pb::daemon_service_server::DaemonServiceServer<DaemonDoor>>().await;
    let (reflection, alpha) = reflection::services();
    let mut routes = RoutesBuilder::default();
    routes
        .add_service(AgentDoor::service(core.clone()))
        .add_service(ApprovalDoor::service(core.clone()))
        .add_service(DaemonDoor::service(core.clone(), Arc::new(vitals)))
        .add_service(RozDoor::service(core.clone()))
        .add_service(health_service)
        .add_service(reflection)
        .add_service(alpha);
    routes.routes()
}
