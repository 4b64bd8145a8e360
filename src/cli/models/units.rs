//! Numbers as people read them.

/// Bytes in powers of a thousand, as hubs and disks count: `4.7 GB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB", "PB", "EB"], " ")
}

/// Parameters: `8.0B`.
pub fn parameters(count: u64) -> String {
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

/// `1h02m`, `3m05s`, `7s`.
pub fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers() {
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
        assert_eq!(parameters(8_030_261_312), "8.0B");
        for (count, expect) in [(0, "0s"), (65, "1m05s"), (3720, "1h02m")] {
            assert_eq!(duration(count), expect);
        }
    }
}
