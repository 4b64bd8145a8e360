//! Blocking work on tokio: the only `spawn_blocking` in the crate.

use std::thread;

use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// Blocking work on a thread of its own. Dropping this does not stop the work.
pub struct Blocking<T>(JoinHandle<T>);

/// Runs `work` on a thread for blocking work.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    // The thread enters the caller's span, so that what a provider or tool logs carries the run's name.
    let span = tracing::Span::current();
    Blocking(spawn_blocking(move || span.in_scope(work)))
}

/// Runs `work` on a thread that is not one of those for blocking work, so that it does not wait behind them. Only for
/// work that runs once or a few times at a time. If there is no thread, `work` is dropped.
pub fn blocking_apart(name: &str, work: impl FnOnce() + Send + 'static) {
    let span = tracing::Span::current();
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || span.in_scope(work));
    if let Err(error) = spawned {
        tracing::warn!(%error, name, "cannot start a thread");
    }
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
