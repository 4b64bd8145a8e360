//! The time limits of the steps in which the daemon stops.
//!
//! The steps follow one another, so the process ends at most [`TOTAL`] after it was told to stop, even if clients do
//! not read and a llama-server hangs. A daemon that is started meanwhile waits at least that long for the lock.

use std::time::Duration;

/// The limit of all steps together, from the signal or the request to stop until the process ends.
pub const TOTAL: Duration = Duration::from_secs(10);

/// The limit for runs to end, and for the clients of all doors to read how they ended.
pub const CLIENTS: Duration = Duration::from_millis(4500);

/// The time for clients to read the end of their streams, when all streams have ended. It is a part of [`CLIENTS`].
pub const LAST_READ: Duration = Duration::from_secs(1);

/// The limit for a llama-server to save its prompt cache.
pub const SAVE_CACHE: Duration = Duration::from_secs(2);

/// The time between the first SIGTERM to a llama-server and the second. A llama-server that has just started may miss
/// the first one. If it receives the first one, it waits for open streams, and the second ends it at once.
pub const FIRST_SIGTERM: Duration = Duration::from_secs(2);

/// The time between the second SIGTERM and SIGKILL.
pub const SECOND_SIGTERM: Duration = Duration::from_millis(500);

/// The limit for the kernel to end a process after SIGKILL.
pub const SIGKILL: Duration = Duration::from_millis(500);

/// The limit for the threads of the tokio runtime to end.
pub const RUNTIME: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_together_take_at_most_the_total() {
        // The steps of `daemon::start` and `RunningServer::stop`, in their order.
        let steps = [CLIENTS, SAVE_CACHE, FIRST_SIGTERM, SECOND_SIGTERM, SIGKILL, RUNTIME];
        let sum: Duration = steps.iter().sum();
        assert!(sum <= TOTAL, "{sum:?}");
        assert!(LAST_READ < CLIENTS);
    }
}
