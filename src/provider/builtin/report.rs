//! What a small model says of a result, held to what the result says.
//!
//! The first line is its own. What follows are lines of a file, a page or a list, copied letter by letter, one after the
//! other as they stand in the result. So it may stop early, and says nothing that is not there.

use super::bytewise::Rules;

/// Such a model is shown less of a result.
const LONGEST: usize = 64 << 10;

/// At the end of a line that is not shown in full, and before an item of a list.
const CUT: &[u8] = "…".as_bytes();
const ITEM: &[u8] = b"- ";

pub struct Report {
    /// Of the result, without the numbers before them that a file's have.
    lines: Vec<Line>,
}

/// The same line with and without its number.
struct Line([Vec<u8>; 2]);

#[derive(Clone)]
pub enum At {
    First,
    /// Behind the first line, which a blank one may follow.
    Between,
    /// So much of a line, and which it may be.
    Line(Vec<u8>, Vec<usize>),
}

impl Report {
    pub fn new(result: &str) -> Self {
        let result = &result.as_bytes()[..result.len().min(LONGEST)];
        Self { lines: result.split(|&byte| byte == b'\n').map(Line::new).collect() }
    }

    /// Those of the `open` lines that are said in full.
    fn whole<'a>(&self, said: &'a [u8], open: &'a [usize]) -> impl Iterator<Item = usize> {
        open.iter().copied().filter(|&line| self.lines.get(line).is_some_and(|line| line.is(said)))
    }
}

impl Rules for Report {
    type At = At;

    fn start(&self) -> At {
        At::First
    }

    fn step(&self, at: At, byte: u8) -> Option<At> {
        let (mut said, open) = match (at, byte) {
            (At::First, b'\n') => return Some(At::Between),
            (At::First, _) => return Some(At::First),
            (At::Between, b'\n') => return Some(At::Between),
            (At::Between, _) => (Vec::new(), (0..self.lines.len()).collect()),
            (At::Line(said, open), b'\n') => {
                let next = self.whole(&said, &open).map(|line| line + 1);
                let next: Vec<usize> = next.filter(|&line| line < self.lines.len()).collect();
                return (!next.is_empty()).then_some(At::Line(Vec::new(), next));
            }
            (At::Line(said, open), _) => (said, open),
        };
        said.push(byte);
        let open: Vec<usize> = open
            .into_iter()
            .filter(|&line| self.lines.get(line).is_some_and(|line| line.begins(&said)))
            .collect();
        (!open.is_empty()).then_some(At::Line(said, open))
    }

    fn may_end(&self, at: &At) -> bool {
        match at {
            At::First | At::Between => true,
            At::Line(said, open) => self.whole(said, open).next().is_some(),
        }
    }

    fn complete(&self, _: &At) -> bool {
        false
    }
}

impl Line {
    fn new(line: &[u8]) -> Self {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let unnumbered = line.trim_ascii_start();
        let digits = unnumbered.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let unnumbered = unnumbered[digits..].strip_prefix(b": ").filter(|_| digits > 0);
        Self([line.to_vec(), unnumbered.unwrap_or(line).to_vec()])
    }

    /// Whether it, or an item of it, may begin like this.
    fn begins(&self, said: &[u8]) -> bool {
        let begins = |said: &[u8]| {
            self.0.iter().any(|line| {
                let same = line.iter().zip(said).take_while(|(line, said)| line == said).count();
                // Which byte of a character it is that differs is not known.
                (0..CUT.len()).any(|back| CUT.starts_with(&said[same.saturating_sub(back)..]))
            })
        };
        begins(said) || ITEM.starts_with(said) || said.strip_prefix(ITEM).is_some_and(begins)
    }

    /// Whether this is all that is said of it.
    fn is(&self, said: &[u8]) -> bool {
        let is = |said: &[u8]| said.ends_with(CUT) || self.0.iter().any(|line| line == said);
        is(said) || said.strip_prefix(ITEM).is_some_and(is)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::bytewise::Bytewise, *};
    use crate::engine::Constraint as _;

    /// How much of `answer` may be said of `result`, and whether it may end there.
    fn said<'a>(result: &str, answer: &'a str) -> (&'a str, bool) {
        let mut report = Bytewise::new(Report::new(result));
        let allowed = answer.bytes().take_while(|byte| {
            let allowed = report.allows(&[*byte]);
            report.push(&[*byte]);
            allowed
        });
        (&answer[..allowed.count()], report.may_end())
    }

    const FILE: &str = "1: # Notes\n2: \n3: buy apples and pears";

    #[test]
    fn lines_of_the_result_may_be_said() {
        let page = "Status: 200 OK\n\n# A\r\n\n\nb: “c”\n- d…\n";
        let list = "a.rs\nb/c.rs\n(2 shown, there may be more)";
        for (result, answer) in [
            (FILE, "a.txt says:\n\n# Notes\n\nbuy apples and pears"),
            (FILE, "a.txt begins:\n\n# Notes\n\nbuy apples…"),
            (FILE, "Line 3 of a.txt:\n\nbuy apples and pears"),
            (FILE, "That did not work: no"),
            (page, "x.org says:\n\n# A\n\n\nb: “c”\n- d…"),
            (page, "x.org begins:\n\nb: …\n- d…"),
            (list, "Here are 2 files:\n- a.rs\n- b/c.rs\n(2 shown, there may be more)"),
        ] {
            assert_eq!(said(result, answer), (answer, true));
        }
    }

    #[test]
    fn nothing_else_may_be_said_and_nothing_left_out() {
        for (result, answer, allowed) in [
            (FILE, "a.txt says:\n\n# Note book", "a.txt says:\n\n# Note"),
            (FILE, "a.txt says:\n\nbuy apples buy", "a.txt says:\n\nbuy apples "),
            (FILE, "a.txt says:\n<tool_call>", "a.txt says:\n"),
            (FILE, "a.txt says:\n\n# Notes\nbuy", "a.txt says:\n\n# Notes\n"),
            (FILE, "a.txt says:\n\nbuy apples and pears\n", "a.txt says:\n\nbuy apples and pears"),
            ("a\nb\nc", "Here are 3 files:\n- a\n- c", "Here are 3 files:\n- a\n- "),
        ] {
            assert_eq!(said(result, answer).0, allowed);
        }
        assert_eq!(said(FILE, "a.txt says:\n\n# Not"), ("a.txt says:\n\n# Not", false));
    }
}
