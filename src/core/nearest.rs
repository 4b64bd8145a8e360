//! Finds what somebody may have meant by a word that is not known.

/// Returns the candidate that differs least from `word`, if it differs in so few letters that it can be what was meant:
/// one for each three letters.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = word.chars().count().div_ceil(3);
    let distance = |candidate: &str| strsim::osa_distance(&word, &candidate.to_lowercase());
    let candidates = candidates.into_iter().map(|candidate| (distance(candidate), candidate));
    let (distance, candidate) = candidates.min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_what_is_like_the_word_is_named() {
        let known = ["read_file", "write_file", "list_files"];
        for (word, expect) in [
            ("raed_file", Some("read_file")),
            ("Read-File", Some("read_file")),
            ("list_file", Some("list_files")),
            ("nope", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expect, "{word}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
