//! Finds names and numbers in an answer.

/// Returns true if `text` contains `fact` as a whole word, in upper or lower case.
///
/// A digit before or after a number makes it another number, also across a comma or a full stop: `1,250` and `12.5` do
/// not contain 12. A comma between groups of three digits does not count: `1,250` contains 1250.
pub(crate) fn contains(text: &str, fact: &str) -> bool {
    let (text, fact) = (normalised(text), normalised(fact));
    text.match_indices(&fact).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + fact.len()..]);
        !continues(before.chars().rev()) && !continues(after.chars())
    })
}

/// Returns true if a word or a number goes on in this direction.
fn continues(mut characters: impl Iterator<Item = char>) -> bool {
    match characters.next() {
        Some('.' | ',') => characters.next().is_some_and(|c| c.is_ascii_digit()),
        // Chinese and Japanese have no spaces, so a number may stand between their letters.
        Some(c) => c < '\u{2e80}' && c.is_alphanumeric() || c == '_',
        None => false,
    }
}

/// Returns the text in lower case, with single spaces and without commas in numbers.
fn normalised(text: &str) -> String {
    let text = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let characters: Vec<char> = text.chars().collect();
    let digit = |at: usize| characters.get(at).is_some_and(char::is_ascii_digit);
    let groups =
        |at: usize| at > 0 && digit(at - 1) && (1..=3).all(|next| digit(at + next)) && !digit(at + 4);
    let kept = characters.iter().enumerate().filter(|&(at, &c)| !(c == ',' && groups(at)));
    kept.map(|(_, c)| c).collect()
}
