//! Hangs up on a server that has gone silent: one thread watches every call's deadline.
//!
//! A socket timeout cannot do this: ureq fixes it when the call starts, while the patience here changes
//! (long until the first token, short between tokens) and comments that keep a connection open do not count.

use std::{
    sync::{
        Arc, Condvar, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// Watches one call until it is dropped.
pub struct StallWatchdog {
    watched: Arc<Watched>,
}

struct Watched {
    /// Microseconds since [`Watch::start`].
    deadline: AtomicU64,
    stalled: AtomicBool,
    agent: ureq::Agent,
}

struct Watch {
    start: Instant,
    calls: Mutex<Vec<Arc<Watched>>>,
    changed: Condvar,
}

static WATCH: LazyLock<&'static Watch> = LazyLock::new(|| {
    let watch: &'static Watch = Box::leak(Box::new(Watch {
        start: Instant::now(),
        calls: Mutex::default(),
        changed: Condvar::new(),
    }));
    let spawned = thread::Builder::new().name("model-stall".to_owned()).spawn(move || watch.run());
    if let Err(error) = spawned {
        tracing::warn!(%error, "cannot watch for silent model servers");
    }
    watch
});

impl StallWatchdog {
    /// Starts to wait: unless [`Patience::renew`] is called within `limit`, `agent` is shut down.
    pub fn new(agent: ureq::Agent, limit: Duration) -> Self {
        let watched =
            Arc::new(Watched { deadline: AtomicU64::new(0), stalled: AtomicBool::new(false), agent });
        watched.deadline.store(WATCH.after(limit), SeqCst);
        WATCH.calls.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&watched));
        WATCH.changed.notify_one();
        Self { watched }
    }

    /// Something came: waits `limit` from now. Costs one atomic store.
    pub fn reset(&self, limit: Duration) {
        self.watched.deadline.store(WATCH.after(limit), SeqCst);
    }

    /// As [`Patience::renew`], for a limit that may end before the one before it.
    pub fn reset_shorter(&self, limit: Duration) {
        self.reset(limit);
        // Under the lock, so that the watch cannot miss it between its look and its sleep.
        drop(WATCH.calls.lock().unwrap_or_else(PoisonError::into_inner));
        WATCH.changed.notify_one();
    }

    /// The patience ran out and the connection was closed.
    pub fn has_fired(&self) -> bool {
        self.watched.stalled.load(SeqCst)
    }
}

impl Drop for StallWatchdog {
    fn drop(&mut self) {
        let mut calls = WATCH.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|watched| !Arc::ptr_eq(watched, &self.watched));
    }
}

impl Watch {
    fn after(&self, limit: Duration) -> u64 {
        u64::try_from((self.start.elapsed() + limit).as_micros()).unwrap_or(u64::MAX)
    }

    fn run(&self) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = self.after(Duration::ZERO);
            calls.retain(|watched| {
                let waits = watched.deadline.load(SeqCst) > now;
                if !waits {
                    watched.stalled.store(true, SeqCst);
                    watched.agent.clone().shutdown();
                }
                waits
            });
            let next = calls.iter().map(|watched| watched.deadline.load(SeqCst)).min();
            calls = match next {
                None => self.changed.wait(calls).unwrap_or_else(PoisonError::into_inner),
                Some(next) => {
                    let wait = Duration::from_micros(next.saturating_sub(now).max(1));
                    self.changed.wait_timeout(calls, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
