//! What a small model says of a result, held to what it is shown of the result.
//!
//! The first line is its own but for numbers, and words with digits in them. What follows are the lines of a file, a
//! page or a list, copied letter by letter, one after the other as they stand there, to the last one. So nothing is
//! made up, left out or counted wrongly.

use std::collections::HashSet;

use super::bytewise::Rules;

/// Before an item of a list.
const ITEM: &[u8] = b"- ";
/// Around what a last line says of how much is not shown.
const LEFT_OUT: (&str, &str) = ("… (", " lines)");

pub struct Report {
    /// Without the numbers before them that a file's have.
    lines: Vec<Line>,
    /// Words with digits: those of the result and of the call, and how many lines there are.
    numbers: HashSet<Vec<u8>>,
}

/// A line, and where it begins behind the number that it may have.
struct Line {
    bytes: Vec<u8>,
    text: usize,
}

#[derive(Clone)]
pub enum At {
    /// Behind so much of a word.
    First(Vec<u8>),
    /// Behind the first line, which a blank one may follow.
    Between,
    /// So much of a line, and which it may be.
    Line(Vec<u8>, Vec<usize>),
}

impl Report {
    /// `shown` is what the model sees of the result, and `call` the arguments of the call.
    pub fn new(shown: &str, call: &str) -> Self {
        let mut lines: Vec<&str> = shown.split('\n').collect();
        if lines.len() > 1 {
            lines.pop_if(|last| last.starts_with(LEFT_OUT.0) && last.ends_with(LEFT_OUT.1));
        }
        let count = lines.len().to_string();
        let numbers = [shown, call, &count].into_iter().flat_map(numbers).map(Vec::from).collect();
        Self { lines: lines.into_iter().map(Line::new).collect(), numbers }
    }

    /// Those of the `open` lines that are said in full.
    fn whole<'a>(&self, said: &'a [u8], open: &'a [usize]) -> impl Iterator<Item = usize> {
        open.iter().copied().filter(|&line| self.lines.get(line).is_some_and(|line| line.is(said)))
    }

    /// Whether `word` has no digits, or is one that is known.
    fn counts(&self, word: &[u8]) -> bool {
        !has_digit(word) || self.numbers.contains(word)
    }
}

impl Rules for Report {
    type At = At;

    fn start(&self) -> At {
        At::First(Vec::new())
    }

    fn step(&self, at: At, byte: u8) -> Option<At> {
        let (mut said, open) = match (at, byte) {
            (At::First(mut word), _) if byte.is_ascii_alphanumeric() => {
                word.push(byte);
                let known = !has_digit(&word) || self.numbers.iter().any(|number| number.starts_with(&word));
                return known.then_some(At::First(word));
            }
            (At::First(word), _) if !self.counts(&word) => return None,
            (At::First(_) | At::Between, b'\n') => return Some(At::Between),
            (At::First(_), _) => return Some(At::First(Vec::new())),
            (At::Between, _) => (Vec::new(), (0..self.lines.len()).collect()),
            (At::Line(said, open), b'\n') => {
                let next = self.whole(&said, &open).map(|line| line + 1);
                let next: Vec<usize> = next.filter(|&line| line < self.lines.len()).collect();
                return (!next.is_empty()).then_some(At::Line(Vec::new(), next));
            }
            (At::Line(said, open), _) => (said, open),
        };
        said.push(byte);
        let begins = |line: &usize| self.lines.get(*line).is_some_and(|line| line.begins(&said));
        let open: Vec<usize> = open.into_iter().filter(begins).collect();
        (!open.is_empty()).then_some(At::Line(said, open))
    }

    fn may_end(&self, at: &At) -> bool {
        match at {
            At::First(word) => self.counts(word),
            At::Between => true,
            At::Line(said, open) => self.whole(said, open).any(|line| line + 1 == self.lines.len()),
        }
    }

    fn complete(&self, _: &At) -> bool {
        false
    }
}

/// Words with digits.
fn numbers(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| has_digit(word))
}

fn has_digit(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_digit)
}

impl Line {
    fn new(line: &str) -> Self {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let numbered = line.split_once(": ").filter(|(number, _)| is_number(number.trim_start()));
        let text = numbered.map_or(0, |(_, text)| line.len() - text.len());
        Self { bytes: line.as_bytes().to_vec(), text }
    }

    /// Whether it, or an item of it, may begin like this.
    fn begins(&self, said: &[u8]) -> bool {
        self.any(said, <[u8]>::starts_with) || ITEM.starts_with(said)
    }

    /// Whether this is all that is said of it.
    fn is(&self, said: &[u8]) -> bool {
        self.any(said, |line, said| line == said)
    }

    /// Whether `fits` for the line with or without its number, and for `said` as it is or as an item.
    fn any(&self, said: &[u8], fits: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        let fits = |said: &[u8]| fits(&self.bytes, said) || fits(&self.bytes[self.text..], said);
        fits(said) || said.strip_prefix(ITEM).is_some_and(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::bytewise::Bytewise, *};
    use crate::engine::Constraint as _;

    /// How much of `answer` may be said of `result`, and whether it may end there.
    fn said<'a>(result: &str, answer: &'a str) -> (&'a str, bool) {
        let mut report = Bytewise::new(Report::new(result, r#"{"path": "a2.txt"}"#));
        let allowed = answer.bytes().take_while(|byte| {
            let allowed = report.allows(&[*byte]);
            report.push(&[*byte]);
            allowed
        });
        (&answer[..allowed.count()], report.may_end())
    }

    const FILE: &str = "1: # Notes\n2: \n3: buy apples and pears";
    const PART: &str = "13: # Notes\n14: \n15: buy apples…\n… (3 of 40 lines)";
    const PAGE: &str = "Status: 200 OK\n# A\n\n\nb: “c”\n- d…";

    #[test]
    fn lines_of_the_result_may_be_said() {
        for (result, answer) in [
            (FILE, "a2.txt says:\n\n# Notes\n\nbuy apples and pears"),
            (FILE, "Lines 2 to 3 of a2.txt:\n\n\nbuy apples and pears"),
            (FILE, "That did not work: no"),
            (PART, "a2.txt begins (3 of 40 lines):\n\n# Notes\n\nbuy apples…"),
            (PAGE, "x.org says:\n\n# A\n\n\nb: “c”\n- d…"),
            ("a.rs\nb/c.rs", "Here are 2 files:\n- a.rs\n- b/c.rs"),
            ("a.rs\n(1 shown, there may be more)", "Here is 1 file:\n- a.rs\n(1 shown, there may be more)"),
            ("1: ", "a2.txt says:\n\n"),
            ("a\n… and b", "Here are 2 files:\n- a\n- … and b"),
            ("Successfully wrote 21 bytes", "Done: wrote 21 bytes."),
        ] {
            assert_eq!(said(result, answer), (answer, true));
        }
    }

    #[test]
    fn nothing_else_may_be_said_and_nothing_left_out() {
        for (result, answer, allowed) in [
            (FILE, "a2.txt says:\n\n# Note book", "a2.txt says:\n\n# Note"),
            (FILE, "a2.txt says:\n\nbuy apples buy", "a2.txt says:\n\nbuy apples "),
            (FILE, "a2.txt says:\n<tool_call>", "a2.txt says:\n"),
            (FILE, "a2.txt says:\n\n# Notes\nbuy", "a2.txt says:\n\n# Notes\n"),
            (FILE, "a2.txt says:\n\nbuy apples and pears\n", "a2.txt says:\n\nbuy apples and pears"),
            (FILE, "Lines 1 to 4", "Lines 1 to "),
            (PART, "a2.txt begins (8 of", "a2.txt begins ("),
            (PART, "a2.txt begins (4 of", "a2.txt begins (4"),
            (PART, "x says:\n\nbuy apples…\n…", "x says:\n\nbuy apples…"),
            ("a\nb\nc", "Here are 3 files:\n- a\n- c", "Here are 3 files:\n- a\n- "),
            ("a\nb\nc", "Here are 5 files", "Here are "),
            ("a5\n5b\nc", "Here are 5 files", "Here are 5"),
            (FILE, "a3.txt says", "a"),
        ] {
            assert_eq!(said(result, answer).0, allowed);
        }
        for early in ["a2.txt says:\n\n# Not", "a2.txt says:\n\n# Notes", "a2.txt says:\n\n# Notes\n"] {
            assert_eq!(said(FILE, early), (early, false));
        }
    }
}
