//! Judges where a text without quotes is likely to begin and to end.

use std::ops::Range;

/// The penalty for each sign that a text does not begin or end where it is cut, as a natural logarithm.
const PER_SIGN: f32 = 3.0;

/// Words that requests put around the texts that they name: function words, words for what is to be done, and polite
/// words. A text that is named without quotes seldom begins or ends with one of them.
const WORDS_AROUND: &str = " a about accordingly after again against all already also always am an and any anymore are as \
asap at be because become becomes becoming been before being but by can cause change changed changing contain \
contains convert correct could cut delete deleted did do document does done down drop each edit else erase every \
everywhere exchange file fix following for from get gone has have help here how i if in insert inside instead into is \
it its itself just kindly line lines like made make may me mean meant might modify must my name need needs never next \
no not now occurs of off okay ok on once only onto or ought our out over patch phrase place please plz put quick \
quickly rather read reads real really remove removed rename renamed replace replaced rewrite right said say says \
shall should since so soon string strip substitute such sure swap swapped switch switched take term text than thank \
thanks that the their them then there these they this those though throughout to today together too turn turned \
turns typo under up update us use used uses value via want was we were what when where wherever which while who \
whose will with within without word words would write wrong you your ";

/// Returns how much less likely it is that the text at `span` of a request is meant than a model takes it to be, as a
/// natural logarithm. A text that is `free`, such as the content of a file, may follow any word, and begin and end with any.
pub(super) fn penalty(request: &[u8], span: Range<usize>, free: bool) -> f32 {
    let (before, text, after) = (&request[..span.start], &request[span.clone()], &request[span.end..]);
    let (previous, next) = (word_before(before), word_after(after));
    let [goes_on, is_rest] = [next, previous].map(|word| word.is_some_and(|word| !is_around(word)));
    let mut words = text.split(u8::is_ascii_whitespace);
    let ends = next.is_some() && (words.clone().next_back().is_some_and(is_around) || text.ends_with(b"."));
    let begins = next.is_some() && words.next().is_some_and(is_around);
    let signs = [goes_on, !free && is_rest, !free && begins, !free && ends];
    signs.iter().map(|sign| if *sign { PER_SIGN } else { 0.0 }).sum()
}

/// The word with which the sentence goes on, also after a comma. Returns `None` if something else follows: the end of the
/// line, a punctuation mark or a name.
fn word_after(after: &[u8]) -> Option<&[u8]> {
    let after = after.strip_prefix(b",").unwrap_or(after);
    let after = after.strip_prefix(b" ")?.trim_ascii_start();
    let length = after.iter().position(|byte| !is_letter(*byte)).unwrap_or(after.len());
    let (word, rest) = after.split_at(length);
    let in_name =
        matches!(rest, [mark, after, ..] if !mark.is_ascii_whitespace() && !after.is_ascii_whitespace());
    (!word.is_empty() && !in_name).then_some(word)
}

/// The word of the sentence right before the text.
fn word_before(before: &[u8]) -> Option<&[u8]> {
    let before = before.strip_suffix(b" ")?.trim_ascii_end();
    let start = before.iter().rposition(|byte| !is_letter(*byte)).map_or(0, |at| at + 1);
    let (rest, word) = before.split_at(start);
    let in_name =
        matches!(rest, [.., before, mark] if !mark.is_ascii_whitespace() && !before.is_ascii_whitespace());
    (!word.is_empty() && !in_name).then_some(word)
}

fn is_around(word: &[u8]) -> bool {
    let word = word.to_ascii_lowercase();
    std::str::from_utf8(&word).is_ok_and(|word| WORDS_AROUND.split(' ').any(|around| around == word))
}

/// Returns true for a byte of a word. Characters that are not ASCII count as letters.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'\'' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::{PER_SIGN, penalty};

    /// Counts the signs that `text`, where it first occurs, is not what is meant.
    fn signs(request: &str, text: &str, free: bool) -> f32 {
        let start = request.find(text).unwrap();
        penalty(request.as_bytes(), start..start + text.len(), free) / PER_SIGN
    }

    #[test]
    fn a_text_goes_to_the_words_around_it() {
        for (request, text, expected) in [
            ("replace old motor by new", "old motor", 0.0),
            ("replace old motor -> new", "old motor", 0.0),
            ("replace old motor by new", "old", 1.0),
            ("replace old motor by new", "motor", 1.0),
            ("replace old motor by new", "motor by", 3.0),
            ("replace old motor by new", "replace old motor", 1.0),
            ("replace old motor by new", "new", 0.0),
            ("replace 1, two, three with four", "1, two, three", 0.0),
            ("replace 1, two, three with four", "1", 1.0),
            ("replace the with a in b", "the", 2.0),
            ("PUT old IN ITS PLACE", "old", 0.0),
            ("PUT old IN ITS PLACE", "old IN", 1.0),
            ("make it new. Thanks a lot", "new.", 1.0),
            ("make it new. Thanks a lot", "new", 0.0),
            ("in a.txt old b.txt", "old", 0.0),
            ("old", "old", 0.0),
        ] {
            let signs = signs(request, text, false);
            assert!((signs - expected).abs() < 0.1, "{request}: {text}: {signs}");
        }
    }

    #[test]
    fn a_free_text_has_any_words_but_leaves_none() {
        for (text, expected) in [("is it old", 0.0), ("is it", 1.0), ("it old", 0.0)] {
            assert!((signs("write is it old to a", text, true) - expected).abs() < 0.1, "{text}");
        }
    }
}
