//! The time as these APIs write it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in UTC with milliseconds: `2025-01-01T00:00:00.000Z`.
pub(super) fn now() -> String {
    stamp(SystemTime::now())
}

/// `2025-01-01T00:00:00.000Z`.
pub(super) fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    // Whole milliseconds are printed with three digits, and none at all for a whole second.
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let whole = prost_types::Timestamp { seconds, nanos: 0 }.to_string();
    format!("{}.{:03}Z", whole.trim_end_matches('Z'), since.subsec_millis())
}

/// Seconds since 1970.
pub(super) fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn there_are_always_three_digits() {
        let at = |ms| stamp(UNIX_EPOCH + Duration::from_millis(ms));
        assert_eq!(at(1_735_689_600_000), "2025-01-01T00:00:00.000Z");
        assert_eq!(at(1_735_689_600_007), "2025-01-01T00:00:00.007Z");
        assert_eq!(at(999), "1970-01-01T00:00:00.999Z");
    }
}
