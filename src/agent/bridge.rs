//! Blocking work on tokio: the only `spawn_blocking` in the crate.

use tokio::task::{JoinHandle, spawn_blocking};

use super::protocol::{FailureKind, RunError};

/// A piece of blocking work on its own thread. Dropping it lets the work run on unobserved.
pub(super) struct Blocking<T>(JoinHandle<T>);

/// Gives `work` a thread.
pub(super) fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    // The span goes along, so that what a provider or tool logs carries the run's name.
    let span = tracing::Span::current();
    Blocking(spawn_blocking(move || span.in_scope(work)))
}

impl<T> Blocking<T> {
    /// Waits for the work. May be called again after it was dropped halfway, as `select!` does.
    ///
    /// # Errors
    ///
    /// [`Failure::Internal`] when the work panicked; the run fails, the daemon lives.
    pub(super) async fn join(&mut self) -> Result<T, RunError> {
        (&mut self.0)
            .await
            .map_err(|error| RunError::new(FailureKind::Internal, format!("a worker thread failed: {error}")))
    }
}
