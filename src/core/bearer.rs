//! The token that opens a door.

/// Whether an `Authorization` header shows this token, as `Bearer TOKEN`. The time that it takes does not tell where
/// the two differ.
pub fn is_bearer(header: &str, token: &str) -> bool {
    let Some((scheme, shown)) = header.split_once(' ') else { return false };
    let (shown, token) = (shown.trim().as_bytes(), token.as_bytes());
    scheme.eq_ignore_ascii_case("bearer")
        && shown.len() == token.len()
        && shown.iter().zip(token).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::is_bearer;

    #[test]
    fn only_the_whole_token_opens() {
        for good in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert!(is_bearer(good, "abc"), "{good}");
        }
        for bad in [
            "",
            "abc",
            "Bearer",
            "Bearer ",
            "Bearer ab",
            "Bearer abcd",
            "Bearer abd",
            "Basic abc",
            "Bearerabc",
        ] {
            assert!(!is_bearer(bad, "abc"), "{bad}");
        }
    }
}
