//! Stops an answer in which the model writes the same again and again.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use kontekst_core::{Cancel, ToolDef, ToolNature};
use kontekst_provider::REMINDER;

/// The end of an answer that is looked at, in bytes. All of it has to be repetitions of one text.
const WINDOW: usize = 4096;
/// The same for the repetitions of a longer text.
const LONG_WINDOW: usize = 6144;
/// A text that is repeated stands in the window so often at least, and three times in the long one.
const MIN_TIMES: usize = 4;
/// The longest text that is found when it is repeated, in bytes.
const MAX_PERIOD: usize = LONG_WINDOW / 3;
/// The bytes that have to repeat where the text has no words: empty tables, lines, zeros and the like are data.
const MIN_DATA: usize = 4 * WINDOW;
/// The bytes that have to repeat in a call of a tool that reads: its arguments are names and patterns. A small model on a
/// CPU takes about 20 seconds for them.
const SHORT_WINDOW: usize = 1024;
/// The beginning of a call that has the name of its tool, in bytes.
const CALL_HEAD: usize = 40;
/// The bytes after which the end is looked at again.
const STEP: usize = 512;
/// The number of repetitions that are left in an answer that was stopped.
const KEPT: usize = 2;

/// A request that names a number like this one may want a long list.
const MANY: u64 = 50;

/// The bytes per token, as in the estimates of the context window.
const BYTES_PER_TOKEN: usize = 4;

/// Returns true if the request names a number that is large enough for a text which repeats itself.
pub(crate) fn may_want_repetition(request: &str) -> bool {
    let mut words = request.split(|c: char| !c.is_alphanumeric());
    words.any(|word| word.parse::<u64>().is_ok_and(|number| number >= MANY))
}

/// Reads one answer as it arrives: its text, its thought and its calls. Uses a few KiB however long the answer is.
pub(crate) struct RepeatedText {
    /// At least the last [`WINDOW`] bytes, once there are as many.
    tail: Vec<u8>,
    total: usize,
    unchecked: usize,
    /// The bytes at the end that repeat.
    repeated: usize,
    /// The names of the tools that read, in quotes, as a call in steps has them at its beginning.
    reading: Vec<String>,
    /// The first bytes of the call that is being written.
    call_head: String,
    stopped: StoppedAnswer,
}

/// The end of an answer that was stopped. The provider's thread sets it, and the run reads it.
#[derive(Clone)]
pub(crate) struct StoppedAnswer {
    /// The length of the answer, or 0 if it was not stopped.
    bytes: Arc<AtomicUsize>,
    /// Ends the answer.
    cancel: Cancel,
}

impl StoppedAnswer {
    /// Returns the number of tokens that the answer has cost, about, or `None` if it was not stopped.
    pub(crate) fn tokens(&self) -> Option<u32> {
        let bytes = self.bytes.load(Relaxed);
        (bytes > 0).then(|| u32::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u32::MAX))
    }
}

impl RepeatedText {
    /// `cancel` is triggered when the answer repeats itself.
    pub(crate) fn new(cancel: Cancel, tools: &[ToolDef]) -> Self {
        let reads = |tool: &&ToolDef| matches!(tool.nature, ToolNature::Reads | ToolNature::Fetches);
        Self {
            tail: Vec::new(),
            total: 0,
            unchecked: 0,
            repeated: 0,
            reading: tools.iter().filter(reads).map(|tool| format!("{:?}", tool.name)).collect(),
            call_head: String::new(),
            stopped: StoppedAnswer { bytes: Arc::default(), cancel },
        }
    }

    pub(crate) fn stopped(&self) -> StoppedAnswer {
        self.stopped.clone()
    }

    /// Adds a piece of a call.
    pub(crate) fn push_call(&mut self, piece: &str) {
        if self.call_head.len() < CALL_HEAD {
            let end = piece.floor_char_boundary(CALL_HEAD - self.call_head.len());
            self.call_head.push_str(&piece[..end]);
        }
        self.push(piece);
    }

    /// Adds a piece of the answer.
    pub(crate) fn push(&mut self, piece: &str) {
        self.total += piece.len();
        self.unchecked += piece.len();
        self.tail.extend_from_slice(&piece.as_bytes()[piece.len().saturating_sub(LONG_WINDOW)..]);
        if self.tail.len() > 2 * LONG_WINDOW {
            self.tail.drain(..self.tail.len() - LONG_WINDOW);
        }
        if self.unchecked < STEP {
            return;
        }
        if repeats_reminder(&self.tail) {
            return self.stop();
        }
        let new = std::mem::take(&mut self.unchecked);
        let reads = self.is_reading();
        let short = if reads { SHORT_WINDOW } else { WINDOW };
        let end = |window: usize| &self.tail[self.tail.len().saturating_sub(window)..];
        let found = [(short, MIN_TIMES), (LONG_WINDOW, 3)].into_iter().find_map(|(window, times)| {
            let end = end(window);
            Some((end, window, period(end).filter(|period| period * times <= window)?))
        });
        let Some((end, window, period)) = found else {
            self.repeated = 0;
            return;
        };
        self.repeated = (self.repeated + new).max(end.len());
        let enough = if reads || has_words(&end[..period]) { window } else { MIN_DATA };
        if end.len() == window && self.repeated >= enough {
            self.stop();
        }
    }

    /// Returns true if a call of a tool that reads is being written.
    fn is_reading(&self) -> bool {
        self.call_head.split_once(':').is_some_and(|(key, tool)| {
            key.contains("\"tool\"") && self.reading.iter().any(|name| tool.trim_start().starts_with(name))
        })
    }

    fn stop(&self) {
        if self.stopped.tokens().is_none() {
            self.stopped.bytes.store(self.total, Relaxed);
            self.stopped.cancel.cancel();
        }
    }
}

/// Returns true if the text has the reminder of the request twice. Very small models go on with it without end.
fn repeats_reminder(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    text.matches(REMINDER).nth(1).is_some()
}

/// Returns an answer that was stopped without the repetitions at its end, except for two.
pub(crate) fn without_repetitions(mut text: String) -> String {
    let end = &text.as_bytes()[text.len().saturating_sub(WINDOW / 2)..];
    let long = &text.as_bytes()[text.len().saturating_sub(LONG_WINDOW)..];
    let Some(period) = period(end).filter(|period| 2 * period <= end.len()).or_else(|| period(long)) else {
        return text;
    };
    let bytes = text.as_bytes();
    let same = (period..bytes.len()).rev().take_while(|&at| bytes[at] == bytes[at - period]).count();
    text.truncate(text.floor_char_boundary(text.len() - same + (KEPT - 1) * period));
    text
}

/// Returns the length of the text of which `bytes` are repetitions, if it is short enough. The last one may be cut.
///
/// Takes time in proportion to the bytes: it is the prefix function of Knuth, Morris and Pratt.
fn period(bytes: &[u8]) -> Option<usize> {
    let mut prefix = vec![0; bytes.len()];
    for at in 1..bytes.len() {
        let mut length: usize = prefix[at - 1];
        while length > 0 && bytes[at] != bytes[length] {
            length = prefix[length - 1];
        }
        prefix[at] = length + usize::from(bytes[at] == bytes[length]);
    }
    let period = bytes.len() - prefix.last()?;
    (period <= MAX_PERIOD && period < bytes.len()).then_some(period)
}

/// Returns true if the text has a word and what separates words. Line breaks in JSON are escaped.
fn has_words(text: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    let twice = [text, text].concat();
    let separates = twice.iter().any(|byte| byte.is_ascii_whitespace() || !byte.is_ascii())
        || twice.windows(2).any(|pair| pair == b"\\n");
    separates && twice.windows(3).any(|three| three.iter().all(is_letter))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn tools() -> [ToolDef; 2] {
        let tool = |name: &str, nature| ToolDef { name: name.to_owned(), nature, ..ToolDef::default() };
        [tool("search_files", ToolNature::Reads), tool("write_file", ToolNature::Changes)]
    }

    /// Returns the number of bytes after which the text is stopped, in pieces of `size` bytes.
    fn stopped_after(text: &str, size: usize) -> Option<usize> {
        let mut watch = RepeatedText::new(Cancel::new(), &tools());
        for (at, piece) in text.as_bytes().chunks(size).enumerate() {
            watch.push(std::str::from_utf8(piece).unwrap());
            if watch.stopped().cancel.is_cancelled() {
                return Some((at + 1) * size);
            }
        }
        None
    }

    #[test]
    fn a_text_that_repeats_itself_is_stopped() {
        let line = "I will now read the file and then change it to what was asked for.\n";
        let passage: String =
            (0..32).map(|n| format!("The file {n} of the project holds what the others need. ")).collect();
        assert!(passage.len() > 1500, "{}", passage.len());
        for (text, limit) in [
            (line.repeat(1000), 5120),
            ("the ".repeat(10_000), 5120),
            (format!("{}{}", "Some text before. ".repeat(3), line.repeat(1000)), 5120 + 512),
            (r"def f():\n    pass\n\n".repeat(1000), 5120),
            ("0, ".repeat(20_000), MIN_DATA + 1024),
            (format!("{REMINDER} Fix the typo. ").repeat(1000), 1024),
            (passage.repeat(20), LONG_WINDOW + 512),
            ("\n".repeat(60_000), MIN_DATA + 1024),
            ("A".repeat(60_000), MIN_DATA + 1024),
        ] {
            for size in [1, 7, 4000] {
                let after = stopped_after(&text, size).unwrap_or(usize::MAX);
                assert!(after <= limit + size, "{after}: {}", &text[..60]);
            }
        }
        assert!(stopped_after(&"日本語です。".repeat(1000), 18).is_some());
    }

    #[test]
    fn a_pattern_that_repeats_itself_is_stopped_sooner() {
        let stopped_after = |call: &str| {
            let mut watch = RepeatedText::new(Cancel::new(), &tools());
            let stop = call.as_bytes().chunks(3).position(|piece| {
                watch.push_call(std::str::from_utf8(piece).unwrap());
                watch.stopped().cancel.is_cancelled()
            });
            stop.map(|at| at * 3)
        };
        let pattern = r"\\.py".repeat(4000);
        let search = stopped_after(&format!(r#"{{"tool": "search_files", "pattern": "{pattern}"#));
        assert!(search.is_some_and(|bytes| bytes < 2 * SHORT_WINDOW), "{search:?}");
        let write =
            stopped_after(&format!(r#"{{"tool": "write_file", "path": "read_file", "content": "{pattern}"#));
        assert!(write.is_some_and(|bytes| bytes > MIN_DATA), "{write:?}");
    }

    #[test]
    fn legitimate_texts_are_never_stopped() {
        let numbered = |line: &dyn Fn(usize) -> String| (0..3000).map(line).collect::<String>();
        let mut noise = 1_u64;
        let mut random = String::new();
        for _ in 0..20_000 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random.push(char::from(b'A' + (noise >> 59) as u8 % 26));
        }
        let table = |rows: usize| format!("| name | value |\n| --- | --- |\n{}", "|  |  |\n".repeat(rows));
        let mut matrix = String::new();
        for row in 0..100 {
            writeln!(matrix, "[{}0.0],", "0.0, ".repeat(row % 7 + 20)).unwrap();
        }
        for text in [
            numbered(&|n| format!("- item {n} of the list\n")),
            numbered(&|n| format!("| row {n} | {} | the same words in each of the rows |\n", n * 7)),
            numbered(&|n| format!("value_{n} = {n};\n")),
            table(1500),
            random,
            "A".repeat(12_000),
            "=".repeat(12_000),
            "0x00, ".repeat(2000),
            "AQID".repeat(3000),
            matrix,
            "in other words\n".repeat(250),
            "<td></td>".repeat(400),
        ] {
            assert_eq!(stopped_after(&text, 13), None, "{}", &text[..60]);
        }
    }

    #[test]
    fn an_answer_that_was_stopped_keeps_its_beginning() {
        let text = format!("It is 7. {}", "I think so. ".repeat(500));
        assert_eq!(without_repetitions(text), "It is 7. I think so. I think so");
        assert_eq!(without_repetitions("ä".repeat(5000)), "ää");
        assert_eq!(without_repetitions("Short.".to_owned()), "Short.");
        assert_eq!(without_repetitions(String::new()), "");
    }

    #[test]
    fn a_request_for_a_repetition_is_recognised() {
        for request in ["say hello 500 times", "write 1000 lines", "写 100 行"] {
            assert!(may_want_repetition(request), "{request}");
        }
        for request in ["what is in a.txt?", "add 3 lines to a.txt", ""] {
            assert!(!may_want_repetition(request), "{request}");
        }
    }
}
