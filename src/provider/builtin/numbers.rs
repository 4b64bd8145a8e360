//! The numbers that a request names, in digits or in words.

/// In words, from zero on.
const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
/// Ordinals that are more than a number and `th`.
const ORDINALS: [(&str, u32); 7] =
    [("first", 1), ("second", 2), ("third", 3), ("fifth", 5), ("eighth", 8), ("ninth", 9), ("twelfth", 12)];

/// Every number of `text` that is less than a thousand million, with the ordinals among them.
pub fn numbers(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for part in text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, ' ' | '-')) {
        // Of twenty-six, or of two hundred, the part that came before.
        let mut open = None;
        for word in words(part) {
            let digits = word.starts_with(|first: char| first.is_ascii_digit());
            let value = if digits {
                word.parse().ok().filter(|number| *number < 1_000_000_000)
            } else {
                spelled(word)
            };
            let joined = match (open, value) {
                (Some(tens @ 20..=90), Some(ones @ 1..10)) if tens % 10 == 0 && !digits => Some(tens + ones),
                (Some(ones @ 1..10), Some(100)) if !digits => Some(ones * 100),
                _ => None,
            };
            if joined.is_some() {
                found.pop();
            }
            open = joined.or(value).filter(|_| !digits);
            found.extend(joined.or(value));
        }
    }
    found
}

/// Runs of letters, and runs of digits.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.flat_map(|part| {
        part.as_bytes()
            .chunk_by(|left, right| left.is_ascii_digit() == right.is_ascii_digit())
            .filter_map(|run| std::str::from_utf8(run).ok())
    })
}

fn spelled(word: &str) -> Option<u32> {
    let word = word.to_ascii_lowercase();
    let plain = |word: &str| {
        let at = |list: &[&str]| {
            list.iter().position(|known| *known == word).and_then(|at| u32::try_from(at).ok())
        };
        at(&ONES).or_else(|| at(&TENS).map(|tens| tens * 10 + 20)).or((word == "hundred").then_some(100))
    };
    let ordinal = || {
        let known = ORDINALS.iter().find(|(known, _)| *known == word).map(|(_, number)| *number);
        known
            .or_else(|| word.strip_suffix("ieth").and_then(|word| plain(&format!("{word}y"))))
            .or_else(|| word.strip_suffix("th").and_then(plain))
    };
    plain(&word).or_else(ordinal)
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn digits_and_words_are_numbers() {
        for (text, expected) in [
            ("lines 3 to 12", &[3, 12][..]),
            ("L5-L17, the 3rd", &[5, 17, 3]),
            ("line five, line TWELVE", &[5, 12]),
            ("the first, the eighth and the twentieth line", &[1, 8, 20]),
            ("sixty-two, forty six", &[62, 46]),
            ("twenty-first", &[21]),
            ("lines forty-132", &[40, 132]),
            ("two hundred", &[200]),
            ("twenty, five", &[20, 5]),
            ("a2b.txt 99999999999999999999", &[2]),
            ("none", &[]),
        ] {
            assert_eq!(numbers(text), expected, "{text}");
        }
    }
}
