//! Keeps llama-servers of our own alive, one for each model in use: ready, restarted when one crashes,
//! stopped when nobody needs it or its memory is needed, gone when we are.

mod address;
mod binary;
mod child;
mod crashes;
pub mod exec;
mod load_progress;
mod log_tail;
mod orphans;
mod running;
mod settings;

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant, SystemTime},
};

use uuid::Uuid;

pub use self::settings::Settings;
use self::{binary::Options, child::Child, crashes::Crashes, running::RunningServer};
use super::{
    NoServer, Progress, ProviderError,
    openai::{OpenAiProvider, Probe, Server, ServerClient, SlotCache, Timing, probe, wire_model_name},
    slots::{SlotError, Slots},
};
use crate::core::Cancel;

/// Another port is tried so often when one was taken between our look and llama-server's.
const BIND_TRIES: usize = 3;

/// The supervisor. At most [`Settings::max_loaded`] children run at a time.
pub struct Supervisor {
    settings: Settings,
    timing: Timing,
    /// Who starts, waits for or stops a child; a queue of one place because waiting in it can be cancelled.
    start_queue: Slots,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The one that was used last stands last. A crashed one stays until its model is asked for again.
    loaded: Vec<Arc<RunningServer>>,
    /// By model.
    crashes: HashMap<PathBuf, Crashes>,
    /// By file and time of change, so that an upgrade is seen.
    options: HashMap<(PathBuf, Option<SystemTime>), Options>,
    stopped: bool,
}

impl Supervisor {
    /// Ends what a killed daemon has left behind in `run_dir`, whose lock the caller must hold.
    pub fn new(settings: Settings, timing: Timing) -> Arc<Self> {
        if let Some(dir) = &settings.run_dir {
            orphans::reap(dir);
        }
        Arc::new(Self { settings, timing, start_queue: Slots::new(1), state: Mutex::default() })
    }

    /// The binary that would be started.
    ///
    /// # Errors
    ///
    /// One sentence that says what is missing.
    pub fn binary(&self) -> Result<PathBuf, String> {
        binary::find(&self.settings)
    }

    /// The configuration or the environment says which binary it must be.
    pub fn has_pinned_binary(&self) -> bool {
        self.settings.configured_binary.is_some() || self.settings.env_binary.is_some()
    }

    /// A child of ours is alive.
    pub fn is_running(&self) -> bool {
        self.lock().loaded.iter().any(|running| running.is_alive())
    }

    /// The process id, address and model of the child that was used last.
    pub fn running(&self) -> Option<(u32, ServerClient, String)> {
        let state = self.lock();
        let running = state.loaded.iter().rfind(|running| running.is_alive())?;
        Some((running.child.pid(), running.client.clone(), running.alias.clone()))
    }

    /// The provider for `model`, a file, if it is ready now. Costs microseconds.
    pub fn ready(&self, model: &Path) -> Option<Arc<OpenAiProvider>> {
        let running = self.find(model).filter(|running| running.is_alive())?;
        running.provider.get().filter(|provider| provider.server().is_healthy()).cloned()
    }

    /// Makes `model` ready: starts its server, after the one before is idle and has been stopped.
    ///
    /// # Errors
    ///
    /// [`ProviderError::NoServer`] with the server's last lines when it ends before it is ready, or
    /// crashes again and again.
    pub fn open(
        self: &Arc<Self>,
        binary: &Path,
        model: &Path,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<OpenAiProvider>, ProviderError> {
        let alias = alias(model);
        let waiting = &mut |_| sink(Progress::Loading { model: alias.clone(), fraction: None });
        let _turn = self.start_queue.acquire(None, cancel, waiting).map_err(|no_place| match no_place {
            SlotError::Cancelled => ProviderError::Cancelled,
            SlotError::Closed => stopping_error(),
        })?;
        let mut tries = 0;
        loop {
            let running = match self.find(model) {
                Some(running) if running.is_alive() => running,
                crashed => {
                    if let Some(crashed) = crashed {
                        self.on_crash(&crashed, cancel)?;
                    }
                    while let Some(other) = self.over_limit() {
                        self.drain_and_stop(&other, cancel, sink)?;
                    }
                    tries += 1;
                    self.start(binary, model, &alias, tries)?
                }
            };
            match running.provider.get() {
                Some(provider) if self.is_still_healthy(&running, provider, cancel)? => {
                    return Ok(Arc::clone(provider));
                }
                Some(_) => continue, // it is mourned and started again
                None => {}
            }
            match self.become_ready(&running, cancel, sink) {
                Ok(provider) => return Ok(provider),
                Err(error) => {
                    let ended = !running.is_alive();
                    if ended {
                        self.forget(&running);
                    }
                    // Somebody was faster on that port.
                    if !ended || !running.child.has_logged("couldn't bind") || tries >= BIND_TRIES {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Stops the children and starts no other. Again is harmless.
    pub fn stop(&self) {
        let loaded = {
            let mut state = self.lock();
            state.stopped = true;
            std::mem::take(&mut state.loaded)
        };
        self.start_queue.close();
        thread::scope(|scope| {
            for running in &loaded {
                scope.spawn(|| running.stop());
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The child for `model`, alive or crashed; it counts as used now.
    fn find(&self, model: &Path) -> Option<Arc<RunningServer>> {
        let mut state = self.lock();
        let at = state.loaded.iter().position(|running| running.model == model)?;
        let running = state.loaded.remove(at);
        running.mark_used();
        state.loaded.push(Arc::clone(&running));
        Some(running)
    }

    /// Which child must go before another one may be started: of those that nobody is using the one that
    /// was used least recently, else that one of all.
    fn over_limit(&self) -> Option<Arc<RunningServer>> {
        let state = self.lock();
        let alive = || state.loaded.iter().filter(|running| running.is_alive());
        if alive().count() < self.settings.max_loaded.max(1) {
            return None;
        }
        alive().find(|running| !running.idle_time().is_zero()).or_else(|| alive().next()).cloned()
    }

    fn forget(&self, running: &Arc<RunningServer>) {
        self.lock().loaded.retain(|other| !Arc::ptr_eq(other, running));
    }

    /// Lets the requests of another model come to their end, and stops its server.
    fn drain_and_stop(
        &self,
        running: &Arc<RunningServer>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<(), ProviderError> {
        if let Some(provider) = running.provider.get() {
            let slots = provider.server().slots();
            slots.close();
            sink(Progress::Queued { position: 1 });
            while !slots.wait_idle(cancel, Duration::from_secs(60)) {
                if cancel.is_cancelled() {
                    slots.reopen();
                    return Err(ProviderError::Cancelled);
                }
            }
        }
        running.stop();
        self.forget(running);
        Ok(())
    }

    /// Stops a child once nobody has used it for `limit`. It wakes up when that may be, and is gone with
    /// the child: a daemon that has nothing loaded waits for nothing.
    fn keep_warm(this: &Weak<Self>, running: &Arc<RunningServer>, limit: Duration) {
        let never = Cancel::new();
        loop {
            let left = limit.saturating_sub(running.idle_time());
            if running.child.wait(&never, left) {
                return;
            }
            if running.idle_time() >= limit
                && this.upgrade().is_none_or(|this| this.evict_idle(running, limit))
            {
                return;
            }
        }
    }

    /// Stops a child unless somebody has come to use it. Says whether it did.
    fn evict_idle(&self, running: &Arc<RunningServer>, limit: Duration) -> bool {
        let Ok(_turn) = self.start_queue.acquire(None, &Cancel::new(), &mut |_| {}) else { return true };
        if running.idle_time() < limit {
            return false;
        }
        if let Some(provider) = running.provider.get() {
            let slots = provider.server().slots();
            slots.close(); // who comes now opens it again, and waits for our turn to end
            if !slots.wait_idle(&Cancel::new(), Duration::ZERO) {
                slots.reopen();
                return false;
            }
        }
        tracing::info!(
            pid = running.child.pid(),
            "llama-server is stopped: nobody has used it for {limit:?}"
        );
        running.stop();
        self.forget(running);
        true
    }

    /// Notes that a child which had been ready is gone, and waits for as long as its restart must wait.
    fn on_crash(&self, crashed: &Arc<RunningServer>, cancel: &Cancel) -> Result<(), ProviderError> {
        let obituary = crashed.child.exit_reason();
        tracing::warn!(pid = crashed.child.pid(), "llama-server {obituary}");
        let ended = crashed.child.ended().unwrap_or_else(Instant::now);
        self.forget(crashed);
        let wait = {
            let mut state = self.lock();
            let crashes = state.crashes.entry(crashed.model.clone()).or_default();
            crashes.record(ended, crashed.started, self.timing.backoff)
        };
        let Some(wait) = wait else {
            let fact = format!("llama-server crashes again and again; the last time it {obituary}");
            let hint = "see the log; a smaller `context_size` or model needs less memory".to_owned();
            return Err(ProviderError::NoServer(NoServer { fact, hint }));
        };
        if cancel.is_cancelled_within(wait.saturating_sub(ended.elapsed())) {
            Err(ProviderError::Cancelled)
        } else {
            Ok(())
        }
    }

    fn start(
        self: &Arc<Self>,
        binary: &Path,
        model: &Path,
        alias: &str,
        tries: usize,
    ) -> Result<Arc<RunningServer>, ProviderError> {
        let cannot = |what: &str, error: std::io::Error| {
            let fact = format!("cannot {what}: {error}");
            ProviderError::NoServer(NoServer { fact, hint: format!("the binary is {}", binary.display()) })
        };
        let options = self.options(binary);
        let preferred = Some(self.settings.endpoint.as_str()).filter(|_| tries == 1);
        let address = address::free(preferred).map_err(|error| cannot("find a free port", error))?;
        let key = Uuid::new_v4().simple().to_string();
        let place = (&*address.ip().to_string(), address.port());
        let arguments = settings::arguments(&self.settings, &options, place, model, alias);
        let mut command = self.command(binary, arguments);
        command.env("LLAMA_API_KEY", &key); // not an argument: those are visible to every user
        let link = ServerClient::new(&format!("http://{address}"), Some(key.clone()), self.timing.connect);

        let mut state = self.lock();
        if state.stopped {
            return Err(stopping_error());
        }
        let child = Child::start(command, &key).map_err(|error| cannot("start llama-server", error))?;
        tracing::info!(pid = child.pid(), %address, model = %model.display(), "llama-server started");
        let run_dir = self.settings.run_dir.as_deref();
        let running = Arc::new(RunningServer::new(child, model, alias, link, run_dir));
        state.loaded.push(Arc::clone(&running));
        drop(state);
        if let Some(limit) = self.settings.keep_warm {
            let (this, running) = (Arc::downgrade(self), Arc::clone(&running));
            let warm = thread::Builder::new().name("llama-idle".to_owned());
            if let Err(error) = warm.spawn(move || Self::keep_warm(&this, &running, limit)) {
                tracing::warn!(%error, "llama-server will not be stopped when it is idle");
            }
        }
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
        for name in &self.settings.llama_variables {
            command.env_remove(name);
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
        running: &Arc<RunningServer>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<OpenAiProvider>, ProviderError> {
        let loading = |fraction| Progress::Loading { model: running.alias.clone(), fraction };
        let (mut wait, mut told) = (Duration::from_millis(10), None);
        sink(loading(None));
        loop {
            if let Ok(Probe::Ready(found)) = probe(&running.client, &running.alias, cancel, self.timing.probe)
                && running.is_our_child(&found)
            {
                // With several slots nobody could say whose prompt is in which.
                let kept = self.settings.kv_cache.clone().filter(|_| found.slots == 1).map(|files| {
                    SlotCache::new(
                        files,
                        &running.model,
                        found.window.unwrap_or(0),
                        &self.settings.extra_args,
                    )
                });
                let server =
                    Server::new(running.client.clone(), found.slots, self.timing).with_kv_cache(kept);
                let provider = Arc::new(OpenAiProvider::new(Arc::new(server), &running.alias, found));
                tracing::info!(pid = running.child.pid(), after = ?running.started.elapsed(), "llama-server is ready");
                return Ok(running.mark_ready(provider));
            }
            running.mark_used();
            if running.child.wait(cancel, wait) {
                let fact = format!("llama-server did not start: it {}", running.child.exit_reason());
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
            let fraction = running.child.load_fraction();
            if fraction != told {
                told = fraction;
                sink(loading(fraction));
            }
            wait = (wait * 2).min(Duration::from_millis(250));
        }
    }

    /// Whether a child that was ready still is. One that did not answer is asked, and stopped when it
    /// is silent.
    fn is_still_healthy(
        &self,
        running: &RunningServer,
        provider: &OpenAiProvider,
        cancel: &Cancel,
    ) -> Result<bool, ProviderError> {
        if provider.server().is_healthy() {
            return Ok(true);
        }
        match probe(&running.client, &running.alias, cancel, self.timing.probe) {
            Ok(_) => {
                provider.server().set_healthy(true);
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

fn alias(model: &Path) -> String {
    wire_model_name(&model.file_name().unwrap_or_default().to_string_lossy()).to_owned()
}

fn stopping_error() -> ProviderError {
    let (fact, hint) = ("the daemon is stopping".to_owned(), "start it again".to_owned());
    ProviderError::NoServer(NoServer { fact, hint })
}
