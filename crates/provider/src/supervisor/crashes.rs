//! Decides when a crashed server may be started again: with a growing delay, and after too many crashes not at all.

use std::time::{Duration, Instant};

/// The number of crashes within [`WINDOW`] after which the server is not started again until the window has passed.
const LIMIT: usize = 5;
const WINDOW: Duration = Duration::from_secs(120);

/// The longest delay before a start.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// A server that ran at least this long before it crashed is started again at once.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The recent crashes of one server.
#[derive(Default)]
pub(super) struct Crashes {
    at: Vec<Instant>,
}

impl Crashes {
    /// Records a crash at `now` of a server that was started at `started`. Returns the delay before the next start:
    /// `first` after one crash, and twice as long after each further one. `None` means that it must not be started.
    pub(super) fn record(&mut self, now: Instant, started: Instant, first: Duration) -> Option<Duration> {
        self.at.retain(|&crash| now.duration_since(crash) < WINDOW);
        if self.at.len() >= LIMIT {
            return None; // not recorded, so that the window can pass
        }
        self.at.push(now);
        if self.at.len() >= LIMIT {
            return None;
        }
        if now.duration_since(started) >= STABLE_AFTER {
            return Some(Duration::ZERO);
        }
        let doublings = u32::try_from(self.at.len() - 1).unwrap_or(u32::MAX).min(16);
        Some((first * 2_u32.pow(doublings)).min(MAX_DELAY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_and_ends_in_a_refusal_that_passes() {
        let (mut crashes, start, first) = (Crashes::default(), Instant::now(), Duration::from_millis(500));
        let after = |seconds| start + Duration::from_secs(seconds);
        let waits: Vec<_> =
            (1..=6).map(|second| crashes.record(after(second), after(second), first)).collect();
        let half_seconds = |count: u32| Some(first * count);
        assert_eq!(waits, [half_seconds(1), half_seconds(2), half_seconds(4), half_seconds(8), None, None]);
        assert_eq!(crashes.record(after(200), after(200), first), half_seconds(1));
        assert_eq!(crashes.record(after(300), after(201), first), Some(Duration::ZERO));
    }
}
