//! Compares versions of kontekst.

/// Returns true if version `a` is older than version `b`. A text that is not a version counts as equal, so that no daemon
/// is stopped because of it.
pub(super) fn is_older(a: &str, b: &str) -> bool {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a < b,
        _ => false,
    }
}

fn parse(version: &str) -> Option<[u64; 3]> {
    let core = version.split(['-', '+']).next()?;
    let parts: Option<Vec<u64>> = core.split('.').map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn versions_compare_by_number() {
        for (a, b, expect) in [
            ("0.1.0", "0.2.0", true),
            ("0.9.0", "0.10.0", true),
            ("1.0.0", "1.0.0", false),
            ("2.0.0", "1.9.9", false),
            ("1.0.0-rc1", "1.0.1", true),
            ("garbage", "1.0.0", false),
            ("", "1.0.0", false),
            ("1.0", "1.0.1", false),
        ] {
            assert_eq!(is_older(a, b), expect, "{a} {b}");
        }
    }
}
