//! Logs refused connections, of which another user of the machine can make thousands.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The time after a logged refusal in which further ones are only counted.
const INTERVAL: Duration = Duration::from_secs(60);

/// Logs at most one refusal in each interval, with the number of those that were not logged.
#[derive(Default)]
pub(super) struct Refusals {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    logged: Option<Instant>,
    unlogged: u64,
}

impl Refusals {
    pub(super) fn log(&self, why: impl fmt::Display) {
        let counted = self.state.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now());
        match counted {
            None => {}
            Some(0) => tracing::warn!("connection refused: {why}"),
            Some(unlogged) => {
                tracing::warn!("connection refused: {why}; {unlogged} others were refused before it");
            }
        }
    }
}

impl State {
    /// Counts a refusal. Returns how many were not logged if this one is to be logged.
    fn count(&mut self, now: Instant) -> Option<u64> {
        if self.logged.is_some_and(|logged| now.duration_since(logged) < INTERVAL) {
            self.unlogged += 1;
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_refusals_are_two_lines() {
        let (mut state, start) = (State::default(), Instant::now());
        assert_eq!(state.count(start), Some(0));
        assert!((1..1000).all(|_| state.count(start).is_none()));
        assert_eq!(state.count(start + INTERVAL), Some(999));
        assert_eq!(state.count(start + INTERVAL * 2), Some(0));
    }
}
