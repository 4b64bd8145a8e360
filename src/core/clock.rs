//! The wall clock, as protocols and files write it: RFC 3339 text in UTC, or a count since 1970.
//!
//! A time before 1970, which only a clock that is set wrong returns, counts as 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;

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
    let nanos = since_epoch(time).subsec_nanos();
    let fraction = match nanos {
        0 => String::new(),
        _ if nanos.is_multiple_of(1_000_000) => format!(".{:03}", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1000) => format!(".{:06}", nanos / 1000),
        _ => format!(".{nanos:09}"),
    };
    format!("{}{fraction}Z", date_and_time(time))
}

/// Formats `time` in whole seconds: `2025-01-01T00:00:00Z`.
pub fn rfc3339_seconds(time: SystemTime) -> String {
    format!("{}Z", date_and_time(time))
}

/// Formats `time` in milliseconds, always with three digits: `2025-01-01T00:00:00.000Z`.
pub fn rfc3339_millis(time: SystemTime) -> String {
    format!("{}.{:03}Z", date_and_time(time), since_epoch(time).subsec_millis())
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Formats the part that all RFC 3339 texts share: `2025-01-01T00:00:00`.
fn date_and_time(time: SystemTime) -> String {
    let seconds = since_epoch(time).as_secs();
    let (year, month, day) = civil_date(seconds / SECONDS_PER_DAY);
    let second_of_day = seconds % SECONDS_PER_DAY;
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Returns the year, month and day of the Gregorian calendar, `days` after 1970-01-01.
///
/// Source: `civil_from_days` in Howard Hinnant, "chrono-compatible low-level date algorithms". The year of the
/// calculation begins on the first of March, so that a leap day is its last day. An era is 400 years.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days_since_march_0000 = days + 719_468;
    let era = days_since_march_0000 / 146_097;
    let day_of_era = days_since_march_0000 % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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
