//! Keeps one llama-server of our own alive: the right model, ready, restarted when it crashes, gone when
//! we are.

mod binary;
mod child;
pub mod exec;
mod report;
mod settings;
mod tail;

use std::{
    collections::HashMap,
    ffi::OsString,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use uuid::Uuid;

pub use self::settings::Settings;
use self::{binary::Options, child::Child};
use super::{
    NoServer, Progress, ProviderError,
    llama::{Capabilities, Link, OpenAi, Probe, Server, Timing, probe, wire_model},
    pause::pause,
    slots::{NoPlace, Slots},
};
use crate::core::Cancel;

/// Crashes in [`CRASH_WINDOW`] after which it is not started again.
const CRASH_LIMIT: usize = 5;
const CRASH_WINDOW: Duration = Duration::from_secs(120);

/// Between a crash and the next start: doubles from the first to the last.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Another port is tried so often when one was taken between our look and llama-server's.
const BIND_TRIES: usize = 3;

/// The supervisor. At most one child runs at a time.
pub struct Supervisor {
    settings: Settings,
    timing: Timing,
    /// Who starts, waits for or changes the child; a queue of one place because waiting in it can be cancelled.
    turn: Slots,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Running>>,
    crashes: Vec<Instant>,
    /// By file and time of change, so that an upgrade is seen.
    options: HashMap<(PathBuf, Option<SystemTime>), Options>,
    stopped: bool,
}

/// A child and how it is reached.
struct Running {
    child: Child,
    model: PathBuf,
    alias: String,
    link: Link,
    key: String,
    started: Instant,
    /// Set when it is ready.
    provider: OnceLock<Arc<OpenAi>>,
}

impl Supervisor {
    pub fn new(settings: Settings, timing: Timing) -> Self {
        Self { settings, timing, turn: Slots::new(1), state: Mutex::default() }
    }

    /// The binary that would be started.
    ///
    /// # Errors
    ///
    /// One sentence that says what is missing.
    pub fn binary(&self) -> Result<PathBuf, String> {
        binary::find(&self.settings)
    }

    /// A child of ours is alive.
    pub fn is_running(&self) -> bool {
        self.alive().is_some()
    }

    /// The process id, address and model of the child that is alive.
    pub fn running(&self) -> Option<(u32, Link, String)> {
        self.alive().map(|running| (running.child.pid(), running.link.clone(), running.alias.clone()))
    }

    /// The provider for `model`, a file, if it is ready now. Costs microseconds.
    pub fn ready(&self, model: &Path) -> Option<Arc<OpenAi>> {
        let running = self.alive().filter(|running| running.model == model)?;
        running.provider.get().filter(|provider| provider.server().is_good()).cloned()
    }

    /// Makes `model` ready: starts its server, after the one before is idle and has been stopped.
    ///
    /// # Errors
    ///
    /// [`ProviderError::NoServer`] with the server's last lines when it ends before it is ready, or
    /// crashes again and again.
    pub fn open(
        &self,
        binary: &Path,
        model: &Path,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<OpenAi>, ProviderError> {
        let alias = alias(model);
        let waiting = &mut |_| sink(Progress::Loading { model: alias.clone(), fraction: None });
        let _turn = self.turn.take(cancel, waiting).map_err(|no_place| match no_place {
            NoPlace::Cancelled => ProviderError::Cancelled,
            NoPlace::Closed => stopping(),
        })?;
        let mut tries = 0;
        loop {
            let running = match self.current() {
                Some(running) if running.child.exited().is_none() && running.model == model => running,
                before => {
                    match before {
                        Some(other) if other.child.exited().is_none() => self.leave(&other, cancel, sink)?,
                        Some(crashed) => self.mourn(&crashed, cancel)?,
                        None => {}
                    }
                    tries += 1;
                    self.start(binary, model, &alias, tries)?
                }
            };
            match running.provider.get() {
                Some(provider) if self.confirm(&running, provider, cancel)? => {
                    return Ok(Arc::clone(provider));
                }
                Some(_) => continue, // it is mourned and started again
                None => {}
            }
            match self.become_ready(&running, cancel, sink) {
                Ok(provider) => return Ok(provider),
                Err(error) => {
                    let ended = running.child.exited().is_some();
                    if ended {
                        self.forget();
                    }
                    // Somebody was faster on that port.
                    if !ended || !running.child.said("couldn't bind") || tries >= BIND_TRIES {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Stops the child and starts no other. Again is harmless.
    pub fn stop(&self) {
        let current = {
            let mut state = self.lock();
            state.stopped = true;
            state.current.take()
        };
        self.turn.close();
        if let Some(running) = current {
            running.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<Arc<Running>> {
        self.lock().current.clone()
    }

    fn alive(&self) -> Option<Arc<Running>> {
        self.current().filter(|running| running.child.exited().is_none())
    }

    fn forget(&self) {
        self.lock().current = None;
    }

    /// Lets the requests of the model before come to their end, and stops its server.
    fn leave(
        &self,
        running: &Running,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<(), ProviderError> {
        if let Some(provider) = running.provider.get() {
            let slots = provider.server().slots();
            slots.close();
            sink(Progress::Queued { place: 1 });
            while !slots.idle(cancel, Duration::from_secs(60)) {
                if cancel.is_cancelled() {
                    slots.reopen();
                    return Err(ProviderError::Cancelled);
                }
            }
        }
        running.child.stop();
        self.forget();
        Ok(())
    }

    /// Notes that a child which had been ready is gone, and waits for as long as its restart must wait.
    fn mourn(&self, crashed: &Running, cancel: &Cancel) -> Result<(), ProviderError> {
        let obituary = crashed.child.obituary();
        tracing::warn!(pid = crashed.child.pid(), "llama-server {obituary}");
        let (crashes, last) = {
            let mut state = self.lock();
            state.current = None;
            let now = Instant::now();
            state.crashes.retain(|&crash| now.duration_since(crash) < CRASH_WINDOW);
            state.crashes.push(now);
            (state.crashes.len(), now)
        };
        if crashes >= CRASH_LIMIT {
            let fact =
                format!("llama-server crashed {crashes} times in two minutes; the last time it {obituary}");
            let hint = "see the log; a smaller `context_size` or model needs less memory".to_owned();
            return Err(ProviderError::NoServer(NoServer { fact, hint }));
        }
        let doublings = u32::try_from(crashes - 1).unwrap_or(u32::MAX).min(6);
        let wait = (BACKOFF.0 * 2_u32.pow(doublings)).min(BACKOFF.1);
        let lived_well = crashed.started.elapsed() > Duration::from_secs(60) && crashes == 1;
        let wait = if lived_well { Duration::ZERO } else { wait.saturating_sub(last.elapsed()) };
        if pause(cancel, wait) { Ok(()) } else { Err(ProviderError::Cancelled) }
    }

    fn start(
        &self,
        binary: &Path,
        model: &Path,
        alias: &str,
        tries: usize,
    ) -> Result<Arc<Running>, ProviderError> {
        let cannot = |what: &str, error: std::io::Error| {
            let fact = format!("cannot {what}: {error}");
            ProviderError::NoServer(NoServer { fact, hint: format!("the binary is {}", binary.display()) })
        };
        let options = self.options(binary);
        let preferred = Some(self.settings.endpoint.as_str()).filter(|_| tries == 1);
        let address = free_address(preferred).map_err(|error| cannot("find a free port", error))?;
        let key = Uuid::new_v4().simple().to_string();
        let place = (&*address.ip().to_string(), address.port());
        let arguments = settings::arguments(&self.settings, &options, place, model, alias);
        let mut command = self.command(binary, arguments);
        command.env("LLAMA_API_KEY", &key); // not an argument: those are visible to every user
        let link = Link::new(&format!("http://{address}"), Some(key.clone()), self.timing.connect);

        let mut state = self.lock();
        if state.stopped {
            return Err(stopping());
        }
        let child = Child::start(command, &key).map_err(|error| cannot("start llama-server", error))?;
        tracing::info!(pid = child.pid(), %address, model = %model.display(), "llama-server started");
        let running = Arc::new(Running {
            child,
            model: model.to_owned(),
            alias: alias.to_owned(),
            link,
            key,
            started: Instant::now(),
            provider: OnceLock::new(),
        });
        state.current = Some(Arc::clone(&running));
        Ok(running)
    }

    fn command(&self, binary: &Path, arguments: Vec<OsString>) -> Command {
        let mut command = match &self.settings.launcher {
            Some(launcher) => {
                let mut command = Command::new(launcher);
                command.arg(exec::ROLE).args(exec::arguments(binary.into(), arguments));
                command
            }
            None => {
                let mut command = Command::new(binary);
                command.args(arguments);
                command
            }
        };
        // What the user set for a server of their own must not change ours.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LLAMA_") {
                command.env_remove(name);
            }
        }
        // A manager's child: leaves when its stdin closes, and tells how far it has loaded.
        command.env("LLAMA_SERVER_ROUTER_PORT", "1");
        command.current_dir(&self.settings.model_dir);
        command
    }

    fn options(&self, binary: &Path) -> Options {
        let changed = binary.metadata().and_then(|metadata| metadata.modified()).ok();
        let key = (binary.to_owned(), changed);
        if let Some(known) = self.lock().options.get(&key) {
            return known.clone();
        }
        let options = Options::ask(binary);
        self.lock().options.insert(key, options.clone());
        options
    }

    /// Waits until the child has loaded its model. A cancel leaves it loading: the next one who asks
    /// finds it further on.
    fn become_ready(
        &self,
        running: &Arc<Running>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<OpenAi>, ProviderError> {
        let loading = |fraction| Progress::Loading { model: running.alias.clone(), fraction };
        let (mut wait, mut told) = (Duration::from_millis(10), None);
        sink(loading(None));
        loop {
            if let Ok(Probe::Ready(found)) = probe(&running.link, &running.alias, cancel, self.timing.probe)
                && running.is_itself(&found)
            {
                let server = Server::new(running.link.clone(), found.slots, self.timing);
                let provider = Arc::new(OpenAi::new(Arc::new(server), &running.alias, found));
                tracing::info!(pid = running.child.pid(), after = ?running.started.elapsed(), "llama-server is ready");
                return Ok(Arc::clone(running.provider.get_or_init(|| provider)));
            }
            if running.child.wait(cancel, wait) {
                let fact = format!("llama-server did not start: it {}", running.child.obituary());
                let hint = format!("try it by hand: llama-server -m {}", running.model.display());
                return Err(ProviderError::NoServer(NoServer { fact, hint }));
            }
            if cancel.is_cancelled() {
                return Err(ProviderError::Cancelled);
            }
            if running.started.elapsed() > self.timing.load {
                running.child.stop();
                let fact = format!("llama-server was not ready after {:?}", self.timing.load);
                let hint = "see the log for what it was doing".to_owned();
                return Err(ProviderError::NoServer(NoServer { fact, hint }));
            }
            let fraction = running.child.fraction();
            if fraction != told {
                told = fraction;
                sink(loading(fraction));
            }
            wait = (wait * 2).min(Duration::from_millis(250));
        }
    }

    /// Whether a child that was ready still is. One that did not answer is asked, and stopped when it
    /// is silent.
    fn confirm(&self, running: &Running, provider: &OpenAi, cancel: &Cancel) -> Result<bool, ProviderError> {
        if provider.server().is_good() {
            return Ok(true);
        }
        match probe(&running.link, &running.alias, cancel, self.timing.probe) {
            Ok(_) => {
                provider.server().set_good(true);
                Ok(true)
            }
            Err(ProviderError::Cancelled) => Err(ProviderError::Cancelled),
            Err(_) => {
                running.stop();
                Ok(false)
            }
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Running {
    /// What answers is our child and no one else who has its port: it took our key and has our file.
    fn is_itself(&self, found: &Capabilities) -> bool {
        let named = found.model_path.as_deref().map(Path::new).and_then(Path::file_name);
        self.child.exited().is_none() && !self.key.is_empty() && named == self.model.file_name()
    }

    fn stop(&self) {
        if let Some(provider) = self.provider.get() {
            provider.server().slots().close();
        }
        self.child.stop();
    }
}

fn alias(model: &Path) -> String {
    wire_model(&model.file_name().unwrap_or_default().to_string_lossy()).to_owned()
}

fn stopping() -> ProviderError {
    let (fact, hint) = ("the daemon is stopping".to_owned(), "start it again".to_owned());
    ProviderError::NoServer(NoServer { fact, hint })
}

/// The address of `preferred`, a URL, if it is on this machine and its port is free; else any free port.
fn free_address(preferred: Option<&str>) -> std::io::Result<SocketAddr> {
    let wanted = preferred.and_then(|url| url::Url::parse(url).ok()).and_then(|url| {
        let ip = match url.host()? {
            url::Host::Domain("localhost") => Ipv4Addr::LOCALHOST.into(),
            url::Host::Ipv4(ip) if ip.is_loopback() => ip.into(),
            url::Host::Ipv6(ip) if ip == Ipv6Addr::LOCALHOST => ip.into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, url.port_or_known_default()?))
    });
    // The listener is closed again: llama-server binds the port itself. Who is faster is seen by its exit.
    let bind = |address: SocketAddr| TcpListener::bind(address)?.local_addr();
    match wanted.map(bind) {
        Some(Ok(address)) => Ok(address),
        _ => bind((Ipv4Addr::LOCALHOST, 0).into()),
    }
}
