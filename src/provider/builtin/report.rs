//! What a small model says of a result, held to what the result says.
//!
//! The first line is its own. What follows are lines of a file, a page or a list, copied letter by letter: each has to
//! stand in the result. So it may leave something out, and repeats nothing that is not there.

use memchr::memmem;

use crate::engine::Constraint;

/// Such a model is shown less of a result.
const LONGEST: usize = 64 << 10;

/// At the end of a line that is not shown in full, and before an item of a list.
const CUT: &[u8] = "…".as_bytes();
const ITEM: &[u8] = b"- ";

pub struct Report {
    result: Vec<u8>,
    /// What has come of a line; `None` in the first one.
    line: Option<Vec<u8>>,
}

impl Report {
    pub fn new(result: &str) -> Self {
        let result = result.as_bytes();
        Self { result: result[..result.len().min(LONGEST)].to_vec(), line: None }
    }

    fn after(&self, bytes: &[u8]) -> Option<Option<Vec<u8>>> {
        let mut line = self.line.clone();
        for &byte in bytes {
            line = match (line, byte) {
                (_, b'\n') => Some(Vec::new()),
                (None, _) => None,
                (Some(mut line), _) => {
                    line.push(byte);
                    if !self.has(&line) {
                        return None;
                    }
                    Some(line)
                }
            };
        }
        Some(line)
    }

    fn has(&self, line: &[u8]) -> bool {
        let holds = |text: &[u8]| memmem::find(&self.result, text).is_some();
        let shown = |text: &[u8]| {
            holds(text) || (1..=CUT.len()).any(|cut| text.strip_suffix(&CUT[..cut]).is_some_and(holds))
        };
        shown(line) || ITEM.starts_with(line) || line.strip_prefix(ITEM).is_some_and(shown)
    }
}

impl Constraint for Report {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        self.after(bytes).is_some()
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(line) = self.after(bytes) {
            self.line = line;
        }
    }

    fn complete(&self) -> bool {
        false
    }

    fn may_end(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of `answer` may be said of `result`.
    fn said<'a>(result: &str, answer: &'a str) -> &'a str {
        let mut report = Report::new(result);
        let allowed = answer.bytes().take_while(|byte| {
            let allowed = report.allows(&[*byte]);
            report.push(&[*byte]);
            allowed
        });
        &answer[..allowed.count()]
    }

    #[test]
    fn lines_of_the_result_may_be_said_and_no_others() {
        let file = "1: # Notes\n2: \n3: buy apples and pears";
        for good in [
            "a.txt says:\n\n# Notes\n\nbuy apples and pears",
            "a.txt begins:\n\n# Notes\n\nbuy apples…",
            "That did not work: no",
        ] {
            assert_eq!(said(file, good), good);
        }
        assert_eq!(
            said("a.rs\nb/c.rs", "Here are 2 files:\n- a.rs\n- b/c.rs"),
            "Here are 2 files:\n- a.rs\n- b/c.rs"
        );
        for (bad, allowed) in [
            ("a.txt says:\n\n# Note book", "a.txt says:\n\n# Note"),
            ("a.txt says:\n\nbuy apples buy", "a.txt says:\n\nbuy apples "),
            ("a.txt says:\n<tool_call>", "a.txt says:\n"),
        ] {
            assert_eq!(said(file, bad), allowed);
        }
    }
}
