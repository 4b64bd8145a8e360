//! Blocking work on tokio: the only `spawn_blocking` in the crate.

use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// Blocking work on a thread of its own. Dropping this does not stop the work.
pub struct Blocking<T>(JoinHandle<T>);

/// Runs `work` on a thread for blocking work.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    // The thread enters the caller's span, so that what a provider or tool logs carries the run's name.
    let span = tracing::Span::current();
    Blocking(spawn_blocking(move || span.in_scope(work)))
}

impl<T> Blocking<T> {
    /// Waits for the work. Cancel safe: if the future is dropped early, as `select!` does, `join` can be called again.
    ///
    /// # Errors
    ///
    /// The work panicked, or the runtime is shutting down.
    pub async fn join(&mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }
}
