//! When a server that crashed is started again: later each time, and at last not at all.

use std::time::{Duration, Instant};

/// Crashes within [`WINDOW`] after which it is not started again, until the window has passed.
const LIMIT: usize = 5;
const WINDOW: Duration = Duration::from_secs(120);

/// The longest wait before a start.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// One that lived so long and then crashes is started again at once.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The crashes of late.
#[derive(Default)]
pub struct Crashes {
    at: Vec<Instant>,
}

impl Crashes {
    /// Notes a crash at `now` of what was started at `started`, and says how long to wait before the next
    /// start: `first` after one crash, twice as long after each other. `None` is not to start it again.
    pub fn record(&mut self, now: Instant, started: Instant, first: Duration) -> Option<Duration> {
        self.at.retain(|&crash| now.duration_since(crash) < WINDOW);
        if self.at.len() >= LIMIT {
            return None; // not counted: a refusal is no crash, and the window must pass
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
