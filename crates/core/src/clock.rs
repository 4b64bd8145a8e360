//! The wall clock, as protocols and files write it: RFC 3339 text in UTC, or a count since 1970.
//!
//! A time before 1970, which only a clock that is set wrong returns, counts as 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};

/// Returns the seconds since 1970.
pub fn unix_seconds() -> u64 {
    since_epoch(SystemTime::now()).as_secs()
}

/// Returns the milliseconds since 1970.
pub fn unix_millis() -> u64 {
    u64::try_from(since_epoch(SystemTime::now()).as_millis()).unwrap_or(u64::MAX)
}

/// Formats `time` to the nanosecond. Trailing groups of three zeros are left out, as in protobuf's JSON mapping:
/// `2025-01-01T00:00:00.250Z`, but `2025-01-01T00:00:00Z`.
pub fn rfc3339(time: SystemTime) -> String {
    let digits = match since_epoch(time).subsec_nanos() {
        0 => 0,
        nanos if nanos.is_multiple_of(1_000_000) => 3,
        nanos if nanos.is_multiple_of(1000) => 6,
        _ => 9,
    };
    text(time, digits)
}

/// Formats `time` in whole seconds: `2025-01-01T00:00:00Z`.
pub fn rfc3339_seconds(time: SystemTime) -> String {
    text(time, 0)
}

/// Formats `time` in milliseconds, always with three digits: `2025-01-01T00:00:00.000Z`.
pub fn rfc3339_millis(time: SystemTime) -> String {
    text(time, 3)
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Formats `time` with so many digits of a second. The year 9999 is the last one.
fn text(time: SystemTime, digits: u8) -> String {
    let time = Timestamp::try_from(time.max(UNIX_EPOCH)).unwrap_or(Timestamp::MAX);
    DateTimePrinter::new().precision(Some(digits)).timestamp_to_string(&time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn each_format_has_its_own_fraction() {
        let time = UNIX_EPOCH + Duration::new(1_766_399_400, 123_456_789);
        assert_eq!(rfc3339_seconds(time), "2025-12-22T10:30:00Z");
        assert_eq!(rfc3339_millis(time), "2025-12-22T10:30:00.123Z");
        assert_eq!(rfc3339(time), "2025-12-22T10:30:00.123456789Z");
    }

    #[test]
    fn milliseconds_always_have_three_digits() {
        assert_eq!(rfc3339_millis(at(1_735_689_600_000)), "2025-01-01T00:00:00.000Z");
        assert_eq!(rfc3339_millis(at(1_735_689_600_007)), "2025-01-01T00:00:00.007Z");
        assert_eq!(rfc3339_millis(at(999)), "1970-01-01T00:00:00.999Z");
    }

    #[test]
    fn the_full_format_leaves_out_groups_of_zeros() {
        assert_eq!(rfc3339(at(0)), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(at(250)), "1970-01-01T00:00:00.250Z");
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_micros(7)), "1970-01-01T00:00:00.000007Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn dates_agree_with_those_of_protobuf() {
        // The first and the last second of each day from 1970 to 2440, which is more than an era of 400 years.
        for days in 0_i64..172_000 {
            for seconds in [days * 86_400, days * 86_400 + 86_399] {
                let expected = prost_types::Timestamp { seconds, nanos: 0 }.to_string();
                let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap());
                assert_eq!(rfc3339(time), expected);
            }
        }
    }
}
