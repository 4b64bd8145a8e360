//! Blocking work of a run, whose failure fails the run.

use crate::core;

use super::protocol::{FailureKind, RunError};

/// A piece of blocking work on its own thread. If this is dropped, the work still runs to its end.
pub(super) struct Blocking<T>(core::Blocking<T>);

/// Gives `work` a thread.
pub(super) fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    Blocking(core::blocking(work))
}

impl<T> Blocking<T> {
    /// Waits for the work. May be called again after a call was dropped before it was done, as `select!` does.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Internal`] when the work panicked. The run fails, and the daemon goes on.
    pub(super) async fn join(&mut self) -> Result<T, RunError> {
        let internal =
            |error| RunError::new(FailureKind::Internal, format!("a worker thread failed: {error}"));
        self.0.join().await.map_err(internal)
    }
}
