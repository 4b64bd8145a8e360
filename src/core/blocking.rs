//! Blocking work on tokio: the only `spawn_blocking` in the crate.

use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// A piece of blocking work on its own thread. If this is dropped, the work still runs to its end.
pub struct Blocking<T>(JoinHandle<T>);

/// Runs `work` on a thread for blocking work.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    // The thread enters the caller's span, so that what a provider or tool logs carries the run's name.
    let span = tracing::Span::current();
    Blocking(spawn_blocking(move || span.in_scope(work)))
}

impl<T> Blocking<T> {
    /// Waits for the work. May be called again after a call was dropped before it was done, as `select!` does.
    ///
    /// # Errors
    ///
    /// The work panicked, or the runtime is shutting down.
    pub async fn join(&mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }
}
