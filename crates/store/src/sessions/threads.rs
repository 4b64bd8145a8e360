//! The threads that read many session files at once.

use std::thread;

/// The most threads that read files.
const MAX_THREADS: usize = 8;

/// Returns the number of threads that [`run`] starts.
pub(super) fn count() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// Runs `work` on each of these threads, and waits for all of them.
pub(super) fn run(work: impl Fn() + Sync) {
    thread::scope(|scope| (0..count()).for_each(|_| drop(scope.spawn(&work))));
}
