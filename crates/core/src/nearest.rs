//! Finds what somebody may have meant by a word that is not known.

/// A word with fewer letters is often one letter away from another word that was not meant: `what` and `chat`.
const SHORT: usize = 6;

/// Returns the candidate that differs least from `word`, if it differs in so few letters that it can be what was meant: one,
/// or one for each three letters. Nobody mistypes the first letter of a short word: it may be left out, doubled or exchanged.
///
/// What all candidates have in common, such as the end of a file name, must not be part of the words.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let allowed = (length / 3).max(1);
    let distance = |candidate: &'a str| {
        let lower = candidate.to_lowercase();
        let can_be_meant = !word.is_empty() && (length >= SHORT || begin_alike(&word, &lower));
        can_be_meant.then(|| (strsim::osa_distance(&word, &lower), candidate))
    };
    let (distance, candidate) =
        candidates.into_iter().filter_map(distance).min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(candidate)
}

/// Returns true if one of the words begins with the first or the second letter of the other.
fn begin_alike(one: &str, other: &str) -> bool {
    let first_of_one = |one: &str, other: &str| {
        let first = one.chars().next();
        first.is_some() && other.chars().take(2).any(|letter| Some(letter) == first)
    };
    first_of_one(one, other) || first_of_one(other, one)
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
        let commands = ["run", "chat", "jobs", "name", "status"];
        for (word, expect) in [
            ("rnu", Some("run")),
            ("urn", Some("run")),
            ("un", Some("run")),
            ("hcat", Some("chat")),
            ("chatt", Some("chat")),
            ("tatus", Some("status")),
            ("statsu", Some("status")),
            ("what", None),
            ("nope", None),
            ("hops", None),
        ] {
            assert_eq!(nearest(word, commands), expect, "{word}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
