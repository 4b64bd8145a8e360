//! Holds a report of a tool's result to what the model is shown of the result.
//!
//! The first line is free, except for numbers and words with digits. The lines after it are lines of a file, a page or a
//! list, copied byte by byte and in order, up to the last one. So nothing is made up, left out or counted wrongly.

use std::collections::HashSet;

use crate::byte_rules::ByteRules;

/// Precedes an item of a list.
const ITEM: &[u8] = b"- ";
/// The start and end of a last line that says how much of the result is not shown.
const OMISSION: (&str, &str) = ("… (", " lines)");

/// The lines and the numbers of a result.
pub(crate) struct ReportRules {
    lines: Vec<Line>,
    /// Words with digits: those of the result, those of the call, and the number of lines.
    numbers: HashSet<Vec<u8>>,
}

/// A line of the result.
struct Line {
    bytes: Vec<u8>,
    /// The index at which the text begins, after the line number that lines of files have.
    text: usize,
}

#[derive(Clone)]
pub(crate) enum ReportState {
    /// In the first line, within this word.
    First(Vec<u8>),
    /// After the first line. Blank lines may follow.
    Between,
    /// Within a line that has begun like this and may be any of these.
    Line(Vec<u8>, Vec<usize>),
}

impl ReportRules {
    /// `shown` is what the model is shown of the result, and `call` are the arguments of the call.
    pub(crate) fn new(shown: &str, call: &str) -> Self {
        let mut lines: Vec<&str> = shown.split('\n').collect();
        if lines.len() > 1 {
            lines.pop_if(|last| last.starts_with(OMISSION.0) && last.ends_with(OMISSION.1));
        }
        let count = lines.len().to_string();
        let numbers = [shown, call, &count].into_iter().flat_map(numbers).map(Vec::from).collect();
        Self { lines: lines.into_iter().map(Line::new).collect(), numbers }
    }

    /// The `open` lines that `text` repeats in full.
    fn whole<'a>(&self, text: &'a [u8], open: &'a [usize]) -> impl Iterator<Item = usize> {
        open.iter().copied().filter(|&line| self.lines.get(line).is_some_and(|line| line.is(text)))
    }

    /// Returns true if `word` has no digits or is a known number.
    fn is_known(&self, word: &[u8]) -> bool {
        !has_digit(word) || self.numbers.contains(word)
    }
}

impl ByteRules for ReportRules {
    type State = ReportState;

    fn start(&self) -> ReportState {
        ReportState::First(Vec::new())
    }

    fn step(&self, state: ReportState, byte: u8) -> Option<ReportState> {
        let (mut text, open) = match (state, byte) {
            (ReportState::First(mut word), _) if byte.is_ascii_alphanumeric() => {
                word.push(byte);
                let known = !has_digit(&word) || self.numbers.iter().any(|number| number.starts_with(&word));
                return known.then_some(ReportState::First(word));
            }
            (ReportState::First(word), _) if !self.is_known(&word) => return None,
            (ReportState::First(_) | ReportState::Between, b'\n') => return Some(ReportState::Between),
            (ReportState::First(_), _) => return Some(ReportState::First(Vec::new())),
            (ReportState::Between, _) => (Vec::new(), (0..self.lines.len()).collect()),
            (ReportState::Line(text, open), b'\n') => {
                let next = self.whole(&text, &open).map(|line| line + 1);
                let next: Vec<usize> = next.filter(|&line| line < self.lines.len()).collect();
                return (!next.is_empty()).then_some(ReportState::Line(Vec::new(), next));
            }
            (ReportState::Line(text, open), _) => (text, open),
        };
        text.push(byte);
        let begins = |line: &usize| self.lines.get(*line).is_some_and(|line| line.begins(&text));
        let open: Vec<usize> = open.into_iter().filter(begins).collect();
        (!open.is_empty()).then_some(ReportState::Line(text, open))
    }

    fn may_end(&self, state: &ReportState) -> bool {
        match state {
            ReportState::First(word) => self.is_known(word),
            ReportState::Between => true,
            ReportState::Line(text, open) => self.whole(text, open).any(|line| line + 1 == self.lines.len()),
        }
    }

    fn is_complete(&self, _: &ReportState) -> bool {
        false
    }
}

/// The beginning of the sentence about a call that failed.
pub(crate) const FAILED: &str = "That did not work: ";

/// Returns the sentence about the result of a call that writes or changes a file. It needs no model.
pub(crate) fn change_report(result: &str) -> String {
    let first = result.lines().next().unwrap_or_default();
    let (word, rest) = first.split_once(' ').unwrap_or((first, ""));
    match (word, rest) {
        ("no", _) if rest.starts_with("change: ") => format!("Nothing changed{}.", &rest["change".len()..]),
        ("Successfully", rest) => format!("Done: {rest}."),
        ("Replaced", rest) => {
            let times = if rest.starts_with("1 ") { "occurrence" } else { "occurrences" };
            format!("Done: replaced {}.", rest.replacen("occurrence(s)", times, 1))
        }
        ("denied:", reason) => format!("Nothing was done. The call was denied: {reason}"),
        _ => format!("{FAILED}{first}"),
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

    /// Returns true if the line, or a list item of it, begins with `text`.
    fn begins(&self, text: &[u8]) -> bool {
        self.any(text, <[u8]>::starts_with) || ITEM.starts_with(text)
    }

    /// Returns true if `text` is all of the line.
    fn is(&self, text: &[u8]) -> bool {
        self.any(text, |line, text| line == text)
    }

    /// Returns true if `fits` is true for the line with or without its number, and for `text` as it is or as a list item.
    fn any(&self, text: &[u8], fits: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        let fits = |text: &[u8]| fits(&self.bytes, text) || fits(&self.bytes[self.text..], text);
        fits(text) || text.strip_prefix(ITEM).is_some_and(fits)
    }
}

#[cfg(test)]
mod tests {
    use kontekst_engine::Constraint as _;

    use super::*;
    use crate::byte_rules::RuleConstraint;

    /// Returns how much of `answer` is allowed for `result`, and whether it may end there.
    fn said<'a>(result: &str, answer: &'a str) -> (&'a str, bool) {
        let mut report = RuleConstraint::new(ReportRules::new(result, r#"{"path": "a2.txt"}"#));
        let allowed = answer.bytes().take_while(|byte| {
            let allowed = report.allows(&[*byte]);
            report.push(&[*byte]);
            allowed
        });
        (&answer[..allowed.count()], report.may_end())
    }

    #[test]
    fn a_change_is_reported_as_its_tool_reports_it() {
        for (result, said) in [
            ("Successfully wrote 3 bytes to a.txt", "Done: wrote 3 bytes to a.txt."),
            ("Replaced 1 occurrence(s) in a.txt", "Done: replaced 1 occurrence in a.txt."),
            ("Replaced 12 occurrence(s) in a.txt", "Done: replaced 12 occurrences in a.txt."),
            ("Replaced occurrence 2 in a.txt", "Done: replaced occurrence 2 in a.txt."),
            ("no change: a.txt already has this content", "Nothing changed: a.txt already has this content."),
            (
                "nothing would change in a.txt: old_str and new_str are the same",
                "That did not work: nothing would change in a.txt: old_str and new_str are the same",
            ),
            ("denied: no, thanks", "Nothing was done. The call was denied: no, thanks"),
            ("no such file: a.txt\nmore", "That did not work: no such file: a.txt"),
        ] {
            assert_eq!(change_report(result), said);
        }
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
