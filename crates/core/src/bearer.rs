//! Checks the token of a request.

/// Returns true if an `Authorization` header has this token, as `Bearer TOKEN`.
///
/// The comparison takes the same time wherever the two tokens differ.
pub fn is_bearer(header: &str, token: &str) -> bool {
    let Some((scheme, sent)) = header.split_once(' ') else { return false };
    let (sent, token) = (sent.trim().as_bytes(), token.as_bytes());
    scheme.eq_ignore_ascii_case("bearer")
        && sent.len() == token.len()
        && sent.iter().zip(token).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::is_bearer;

    #[test]
    fn only_the_whole_token_is_accepted() {
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
