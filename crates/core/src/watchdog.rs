//! A watchdog for blocking network calls: hangs up when the other side has been silent for too long.
//!
//! A socket timeout cannot do this. ureq fixes it when a call starts, but the limit changes during the call (long
//! until the first token, short between tokens). And SSE comments that only keep a connection open must not count
//! as progress.

use std::{
    sync::{
        Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// The time that the idle thread waits for another call before it ends.
const LINGER: Duration = Duration::from_secs(10);

/// Watches one call until it is dropped.
pub struct StallWatchdog {
    watched: Arc<WatchedCall>,
}

struct WatchedCall {
    /// In microseconds since [`EPOCH`].
    deadline: AtomicU64,
    has_fired: AtomicBool,
    hang_up: Box<dyn Fn() + Send + Sync>,
}

/// All calls that are being watched. One thread serves them all. It ends when there has been no call for [`LINGER`].
struct Watcher {
    calls: Mutex<Calls>,
    changed: Condvar,
}

struct Calls {
    watched: Vec<Arc<WatchedCall>>,
    has_thread: bool,
}

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

static WATCHER: Watcher =
    Watcher { calls: Mutex::new(Calls { watched: Vec::new(), has_thread: false }), changed: Condvar::new() };

impl StallWatchdog {
    /// Starts to watch. Unless [`StallWatchdog::reset`] is called within `limit`, `hang_up` is called once,
    /// on another thread. `hang_up` must not block.
    pub fn new(limit: Duration, hang_up: impl Fn() + Send + Sync + 'static) -> Self {
        let watched = Arc::new(WatchedCall {
            deadline: AtomicU64::new(deadline_in(limit)),
            has_fired: AtomicBool::new(false),
            hang_up: Box::new(hang_up),
        });
        let mut calls = WATCHER.lock();
        calls.watched.push(Arc::clone(&watched));
        if !calls.has_thread {
            match thread::Builder::new().name("stall-watchdog".to_owned()).spawn(|| WATCHER.run()) {
                Ok(_) => calls.has_thread = true,
                // Without the thread there is no limit on silence, but a cancel still ends the call.
                Err(error) => tracing::warn!(%error, "cannot watch for silent servers"),
            }
        }
        drop(calls);
        WATCHER.changed.notify_one();
        Self { watched }
    }

    /// Moves the deadline to `limit` from now, which must not be earlier than the current deadline. Costs one
    /// atomic store.
    pub fn reset(&self, limit: Duration) {
        self.watched.deadline.store(deadline_in(limit), SeqCst);
    }

    /// Moves the deadline to `limit` from now, which may be earlier than the current deadline.
    pub fn reset_shorter(&self, limit: Duration) {
        self.reset(limit);
        // Taking the lock makes sure that the thread is not between reading the deadlines and going to sleep.
        drop(WATCHER.lock());
        WATCHER.changed.notify_one();
    }

    /// Returns true if the deadline has passed and `hang_up` was called.
    pub fn has_fired(&self) -> bool {
        self.watched.has_fired.load(SeqCst)
    }
}

impl Drop for StallWatchdog {
    fn drop(&mut self) {
        WATCHER.lock().watched.retain(|watched| !Arc::ptr_eq(watched, &self.watched));
    }
}

impl Watcher {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut calls = self.lock();
        loop {
            let now = deadline_in(Duration::ZERO);
            calls.watched.retain(|watched| {
                let is_waiting = watched.deadline.load(SeqCst) > now;
                if !is_waiting {
                    watched.has_fired.store(true, SeqCst);
                    (watched.hang_up)();
                }
                is_waiting
            });
            let next = calls.watched.iter().map(|watched| watched.deadline.load(SeqCst)).min();
            let wait =
                next.map_or(LINGER, |deadline| Duration::from_micros(deadline.saturating_sub(now).max(1)));
            let (locked, result) =
                self.changed.wait_timeout(calls, wait).unwrap_or_else(PoisonError::into_inner);
            calls = locked;
            if result.timed_out() && calls.watched.is_empty() {
                calls.has_thread = false;
                return;
            }
        }
    }
}

fn deadline_in(limit: Duration) -> u64 {
    u64::try_from((EPOCH.elapsed() + limit).as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn only_a_call_whose_deadline_passes_is_hung_up() {
        let (hang_up, hung_up) = mpsc::channel();
        let other = hang_up.clone();
        let patient =
            StallWatchdog::new(Duration::from_secs(600), move || other.send("patient").expect("is open"));
        let impatient =
            StallWatchdog::new(Duration::from_secs(600), move || hang_up.send("impatient").expect("is open"));
        impatient.reset_shorter(Duration::from_millis(1));
        assert_eq!(hung_up.recv(), Ok("impatient"));
        assert!(impatient.has_fired() && !patient.has_fired());
    }

    #[test]
    fn a_dropped_watchdog_never_fires() {
        let (hang_up, hung_up) = mpsc::channel::<()>();
        drop(StallWatchdog::new(Duration::from_secs(600), move || hang_up.send(()).expect("is open")));
        assert_eq!(hung_up.recv(), Err(mpsc::RecvError));
    }
}
