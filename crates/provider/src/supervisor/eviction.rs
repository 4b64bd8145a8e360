//! Stopping servers: one that is idle for too long, and one whose memory another model needs.

use std::{
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use kontekst_core::Cancel;

use super::{Supervisor, running::RunningServer};

use crate::{Progress, ProviderError};

/// The longest single wait for a busy server, before the cancel is checked again.
const DRAIN_WAIT: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Returns the server that must be stopped before another one may start, if too many run: the idle server that was
    /// used least recently, or the least recently used of all if none is idle.
    pub(super) fn over_limit(&self) -> Option<Arc<RunningServer>> {
        let state = self.state.lock();
        let alive = || state.loaded.iter().filter(|running| running.is_alive());
        if alive().count() < self.settings.max_loaded.max(1) {
            return None;
        }
        alive().find(|running| !running.idle_time().is_zero()).or_else(|| alive().next()).cloned()
    }

    /// Stops a server once its requests have finished. No new ones are accepted meanwhile.
    pub(super) fn drain_and_stop(
        &self,
        running: &Arc<RunningServer>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<(), ProviderError> {
        if let Some(provider) = running.provider.get() {
            let slots = provider.server().slots();
            slots.close();
            sink(Progress::Queued { position: 1 });
            while !slots.wait_idle(cancel, DRAIN_WAIT) {
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

    /// Starts a thread that stops the server after it has been idle for `limit`. The thread ends with the server.
    pub(super) fn stop_when_idle(self: &Arc<Self>, running: &Arc<RunningServer>, limit: Duration) {
        let (supervisor, running) = (Arc::downgrade(self), Arc::clone(running));
        let thread = thread::Builder::new().name("llama-idle".to_owned());
        if let Err(error) = thread.spawn(move || Self::watch_idle(&supervisor, &running, limit)) {
            tracing::warn!(%error, "llama-server will not be stopped when it is idle");
        }
    }

    fn watch_idle(supervisor: &Weak<Self>, running: &Arc<RunningServer>, limit: Duration) {
        let never = Cancel::new();
        loop {
            let left = limit.saturating_sub(running.idle_time());
            if running.child.wait(&never, left) {
                return;
            }
            let is_idle = running.idle_time() >= limit;
            if is_idle && supervisor.upgrade().is_none_or(|supervisor| supervisor.evict_idle(running, limit))
            {
                return;
            }
        }
    }

    /// Stops an idle server. Returns false if it has been used meanwhile.
    fn evict_idle(&self, running: &Arc<RunningServer>, limit: Duration) -> bool {
        let Ok(_permit) = self.start_queue.acquire(None, &Cancel::new(), &mut |_| {}) else { return true };
        if running.idle_time() < limit {
            return false;
        }
        if let Some(provider) = running.provider.get() {
            let slots = provider.server().slots();
            // A request that arrives now is refused, and then waits in `start_queue` to open the model again.
            slots.close();
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
}
