//! How long each step of stopping the daemon may take.
//!
//! The steps follow one another, so the daemon is gone [`TOTAL`] after it was told to stop, even with clients that
//! do not read and a llama-server that hangs. A daemon that is started meanwhile waits that long for the lock.

use std::time::Duration;

/// The whole time, from the signal or the request to stop until the process ends.
pub const TOTAL: Duration = Duration::from_secs(10);

/// How long runs may take to end, and clients of all doors to read their ending.
pub const CLIENTS: Duration = Duration::from_millis(4500);

/// How long a llama-server may take to save its prompt cache.
pub const SAVE_CACHE: Duration = Duration::from_secs(2);

/// The time between the first SIGTERM to a llama-server and the second. A llama-server may miss a signal in its first
/// moments, and after one that it receives it waits for open streams. A second signal ends it at once.
pub const FIRST_SIGTERM: Duration = Duration::from_secs(2);

/// The time between the second SIGTERM and SIGKILL.
pub const SECOND_SIGTERM: Duration = Duration::from_millis(500);

/// How long the kernel may take to end a process after SIGKILL.
pub const SIGKILL: Duration = Duration::from_millis(500);

/// How long the threads of the runtime may take to end.
pub const RUNTIME: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_add_up_to_no_more_than_the_promise() {
        // The steps of `daemon::start` and `RunningServer::stop`, in their order.
        let steps = [CLIENTS, SAVE_CACHE, FIRST_SIGTERM, SECOND_SIGTERM, SIGKILL, RUNTIME];
        let sum: Duration = steps.iter().sum();
        assert!(sum <= TOTAL, "{sum:?}");
    }
}
