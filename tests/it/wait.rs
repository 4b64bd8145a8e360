//! The only place where tests poll. It is for conditions without an event that a test could wait for.

use std::{
    thread,
    time::{Duration, Instant},
};

use tokio::time::timeout;

/// The time that a test waits before it fails. It is generous, because the machine may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A time limit that no test reaches. A test sets it to be sure that something else ends an operation.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// The end of a wait for several things, after [`TIMEOUT`].
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn start() -> Self {
        Self(Instant::now() + TIMEOUT)
    }

    pub(crate) fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// Checks `condition` again and again until it is true. Fails after [`TIMEOUT`] and names `what`.
///
/// Use it only where there is no line, message, or exit of a process to wait for.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::yield_now();
    }
}

/// Does what [`wait_until`] does on a tokio runtime, where the other tasks run in between.
pub(crate) async fn wait_until_async(what: &str, mut condition: impl FnMut() -> bool) {
    let check = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, check).await.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

/// The time without a change after which a number counts as constant. On a busy machine it may be too short: a test that
/// uses it then sees less than it could.
const QUIET_TIME: Duration = Duration::from_millis(500);

/// Notices that a number has grown beyond a limit and does not change any more. For conditions of [`wait_until`] only.
pub(crate) struct Quiet {
    limit: u64,
    value: u64,
    since: Instant,
}

impl Quiet {
    pub(crate) fn above(limit: u64) -> Self {
        Self { limit, value: 0, since: Instant::now() }
    }

    /// Returns true if the number is above the limit and has been the same for [`QUIET_TIME`].
    pub(crate) fn is_constant(&mut self, value: u64) -> bool {
        if self.value != value {
            (self.value, self.since) = (value, Instant::now());
        }
        value > self.limit && self.since.elapsed() > QUIET_TIME
    }
}
