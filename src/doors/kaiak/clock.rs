//! Time as the API writes it.

use std::time::{SystemTime, UNIX_EPOCH};

/// RFC 3339 in UTC, in whole seconds, with a `Z`: `2025-12-22T10:30:00Z`.
pub(super) fn timestamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    prost_types::Timestamp { seconds: i64::try_from(seconds).unwrap_or_default(), nanos: 0 }.to_string()
}

pub(super) fn now() -> String {
    timestamp(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timestamps_have_no_fraction() {
        let time = UNIX_EPOCH + Duration::new(1_766_399_400, 123_456_789);
        assert_eq!(timestamp(time), "2025-12-22T10:30:00Z");
    }
}
