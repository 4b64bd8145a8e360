//! The numbers that a request names, in digits or in words.

use crate::number_words::{ONES, ORDINALS, TENS};

/// Words before the numbers of a range of lines, and between them.
const BEFORE: [&str; 5] = ["line", "lines", "row", "rows", "between"];
const BETWEEN: [&str; 8] = ["to", "through", "thru", "till", "until", "and", "-", "–"];

/// Finds all numbers in `text` that are less than 1,000,000,000, ordinals included.
pub(crate) fn numbers(text: &str) -> Vec<u32> {
    let parts = parts(text);
    let (mut found, mut rest) = (Vec::new(), &parts[..]);
    while !rest.is_empty() {
        let number = number(rest);
        found.extend(number.map(|(number, _)| number));
        rest = number.map_or(&rest[1..], |(_, rest)| rest);
    }
    found
}

/// Finds the first and the last line of a range such as `lines 3 to 12`, if `text` names only one.
pub(crate) fn range(text: &str) -> Option<(u32, u32)> {
    let parts = parts(text);
    let mut ranges = (0..parts.len()).filter_map(|at| {
        let rest = skip(&parts[at..], &BEFORE).filter(|rest| skip(rest, &BEFORE).is_none())?;
        let (first, rest) = number(rest)?;
        let rest = skip(rest, &BETWEEN)?;
        let (last, _) = number(skip(rest, &BEFORE).unwrap_or(rest))?;
        Some((first, last))
    });
    ranges.next().filter(|(first, last)| first <= last && ranges.next().is_none())
}

/// Returns what follows one of these words.
fn skip<'a, 'b>(parts: &'a [&'b str], words: &[&str]) -> Option<&'a [&'b str]> {
    let (part, rest) = parts.split_first()?;
    words.iter().any(|word| part.eq_ignore_ascii_case(word)).then_some(rest)
}

/// Returns the number that `parts` begin with, and what follows it.
fn number<'a, 'b>(parts: &'a [&'b str]) -> Option<(u32, &'a [&'b str])> {
    let (part, rest) = parts.split_first()?;
    if part.starts_with(|first: char| first.is_ascii_digit()) {
        return part.parse().ok().filter(|number| *number < 1_000_000_000).map(|number| (number, rest));
    }
    let value = spelled(part)?;
    // The second part of twenty-six or of two hundred.
    let after = skip(rest, &["-"]).unwrap_or(rest);
    let next = after.first().and_then(|part| spelled(part));
    Some(match (value, next) {
        (20..=90, Some(ones @ 1..10)) if value % 10 == 0 => (value + ones, &after[1..]),
        (1..10, Some(100)) => (value * 100, &after[1..]),
        _ => (value, rest),
    })
}

/// Splits a text into runs of letters, runs of digits, and single punctuation marks.
fn parts(text: &str) -> Vec<&str> {
    let kind = |c: char| (c.is_ascii_digit(), c.is_alphabetic(), c.is_whitespace());
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let of = kind(first);
        let mark = of == (false, false, false);
        let end = rest.find(|c: char| mark || kind(c) != of);
        let end = if mark { first.len_utf8() } else { end.unwrap_or(rest.len()) };
        if !of.2 {
            parts.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    parts
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
        let known =
            ORDINALS.iter().position(|known| *known == word).and_then(|at| u32::try_from(at + 1).ok());
        known
            .or_else(|| word.strip_suffix("ieth").and_then(|word| plain(&format!("{word}y"))))
            .or_else(|| word.strip_suffix("th").and_then(plain))
    };
    plain(&word).or_else(ordinal)
}

#[cfg(test)]
mod tests {
    use super::{numbers, range};

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

    #[test]
    fn a_range_of_lines_has_two_ends() {
        for (text, expected) in [
            ("show me lines two to three of a.txt", Some((2, 3))),
            ("a.txt, lines 3-12", Some((3, 12))),
            ("line forty-two till 120", Some((42, 120))),
            ("from line 3 to line 5 of 7.txt", Some((3, 5))),
            ("cat b.hs between Twenty four and 61", Some((24, 61))),
            ("between lines 5 and 9", Some((5, 9))),
            ("line 3 of part-2.txt", None),
            ("lines 9 to 3", None),
            ("lines 1 to 3 and lines 5 to 9", None),
            ("line 1993-05-24.log 3", None),
            ("read 3 to 5", None),
            ("the first 10 lines", None),
        ] {
            assert_eq!(range(text), expected, "{text}");
        }
    }
}
