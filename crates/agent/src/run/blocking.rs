//! Blocking work of a run. If it panics, the run fails and the daemon goes on.

use std::time::Duration;

use kontekst_core as core;

use super::protocol::{FailureKind, RunError};

/// The time that a command has to end after a cancel, or after its time limit. A daemon that stops waits longer than that
/// for its runs.
pub(crate) const STOP_LIMIT: Duration = Duration::from_secs(2);

/// Blocking work on a thread of its own. Dropping this does not stop the work; only its result is lost.
pub(crate) struct Blocking<T>(core::Blocking<T>);

/// Starts `work` on a thread that may block.
pub(crate) fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    Blocking(core::blocking(work))
}

impl<T> Blocking<T> {
    /// Waits for the result. If this future is dropped before it is done, `join` may be called again, which
    /// is what a `select!` in a loop does.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Internal`] if the work panicked.
    pub(crate) async fn join(&mut self) -> Result<T, RunError> {
        let internal =
            |error| RunError::new(FailureKind::Internal, format!("a worker thread failed: {error}"));
        self.0.join().await.map_err(internal)
    }
}
