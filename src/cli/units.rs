//! Sizes, counts and times as people read them.

use std::time::{Duration, SystemTime};

use kontekst_core::SessionId;

/// The characters of a short id. Among a thousand sessions, two have the same one with a chance of one in 8,000.
const SHORT_ID: usize = 8;

/// Formats bytes in powers of 1000, as hubs and disks count them: `4.7 GB`.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB", "PB", "EB"], " ")
}

/// Formats bytes in powers of 1024, short enough for a column of a table: `4.9K`.
pub(super) fn short_bytes(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let exact = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..0x10_0000 => format!("{:.1}K", exact / KIB),
        0x10_0000..0x4000_0000 => format!("{:.1}M", exact / KIB / KIB),
        _ => format!("{:.1}G", exact / KIB / KIB / KIB),
    }
}

/// Formats a number of parameters: `8.0B`.
pub(super) fn parameters(count: u64) -> String {
    scaled(count, &["", "K", "M", "B", "T", "P", "E"], "")
}

fn scaled(number: u64, units: &[&str], space: &str) -> String {
    let (mut value, mut unit) = (number as f64, 0);
    // 999.95 is shown as 1.0 of the next unit.
    while value >= 999.95 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let unit = units[unit];
    if number < 1000 { format!("{number}{space}{unit}") } else { format!("{value:.1}{space}{unit}") }
}

/// Formats the time that a download still takes, in two units at most: `1h02m`, `3m05s`, `7s`.
pub(super) fn time_left(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// Formats the time since the daemon started, to the second: `1h2m3s`.
pub(super) fn uptime(seconds: i64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Formats how long ago `then` was, in one unit: `3 days ago`.
pub(super) fn age(now: SystemTime, then: SystemTime) -> String {
    let seconds = now.duration_since(then).unwrap_or(Duration::ZERO).as_secs();
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} ago", counted(count, unit))
}

/// Formats how long ago a time was that is given in milliseconds of Unix time.
pub(super) fn age_since(unix_ms: u64) -> String {
    age(SystemTime::now(), SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms))
}

/// Parses a length of time in one unit: `90d`, `12h`, `4w`, `30m` or `45s`.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => 0,
    };
    let count = digits.parse::<u64>().ok().filter(|_| seconds > 0);
    let all = count.and_then(|count| count.checked_mul(seconds));
    all.map(Duration::from_secs)
        .ok_or_else(|| "write a number and s, m, h, d or w, for example 90d".to_owned())
}

/// Returns the last characters of an id that this program has made, which are random and name it as well as the whole does.
/// Any other id stays whole.
pub(super) fn short_id(id: &str) -> &str {
    if id.parse().is_ok_and(|id: SessionId| id.is_generated()) { &id[id.len() - SHORT_ID..] } else { id }
}

/// Returns the first `max` characters of a text, and `…` if there are more.
pub(super) fn beginning(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Formats a count with its noun: `1 message`, `2 messages`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (count, expect) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_999, "1.0 MB"),
            (4_683_073_184, "4.7 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(count), expect);
        }
        let sizes = [0, 1023, 1024, 1536, 1 << 20, (1 << 30) + (1 << 29)].map(short_bytes);
        assert_eq!(sizes, ["0B", "1023B", "1.0K", "1.5K", "1.0M", "1.5G"]);
        assert_eq!(parameters(8_030_261_312), "8.0B");
    }

    #[test]
    fn ages_are_a_number_and_a_unit() {
        for (text, seconds) in
            [("90d", 7_776_000), ("12h", 43_200), ("4w", 2_419_200), ("0m", 0), ("45s", 45)]
        {
            assert_eq!(parse_age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "90", "-1d", "1.5d", "9x", "99999999999999999999d", "18446744073709551615w"] {
            assert!(parse_age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_short() {
        for (seconds, expect) in [(0, "0s"), (65, "1m05s"), (3720, "1h02m")] {
            assert_eq!(time_left(seconds), expect);
        }
        for (seconds, expect) in [(5, "5s"), (65, "1m5s"), (3723, "1h2m3s"), (90_000, "25h0m0s")] {
            assert_eq!(uptime(seconds), expect);
        }
        let now = SystemTime::now();
        let ages = [0, 59, 60, 3599, 3600, 86_400, 90 * 86_400]
            .map(|seconds| age(now, now - Duration::from_secs(seconds)));
        assert_eq!(
            ages,
            [
                "just now",
                "just now",
                "1 minute ago",
                "59 minutes ago",
                "1 hour ago",
                "1 day ago",
                "90 days ago"
            ]
        );
        assert_eq!(age(now, now + Duration::from_secs(99)), "just now", "the clock was set back");
    }
}
