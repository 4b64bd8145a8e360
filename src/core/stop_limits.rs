//! How long each step of stopping the daemon may take.
//!
//! The steps follow one another, so the daemon is gone [`TOTAL`] after it was told to stop, even with clients that
//! do not read and a llama-server that hangs. A daemon that is started meanwhile waits that long for the lock.

use std::time::Duration;

/// The promise to the outside.
pub const TOTAL: Duration = Duration::from_secs(10);

/// For runs to end and for clients of all doors to read their ending.
pub const CLIENTS: Duration = Duration::from_millis(4500);

/// For a llama-server to write down what it has read of a conversation.
pub const SAVE_CACHE: Duration = Duration::from_secs(2);

/// From the first SIGTERM to the second. llama-server may lose a signal in its first moments, and after one that it
/// hears it waits for open streams. A second one ends it at once.
pub const FIRST_SIGTERM: Duration = Duration::from_secs(2);

/// From the second SIGTERM to SIGKILL.
pub const SECOND_SIGTERM: Duration = Duration::from_millis(500);

/// From SIGKILL until the kernel has ended the process.
pub const SIGKILL: Duration = Duration::from_millis(500);

/// For the threads of the runtime.
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
