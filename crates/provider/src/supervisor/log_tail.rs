//! The last lines of a server's log, for the error message when it ends.

use std::collections::VecDeque;

use crate::openai::single_line;

/// The number of lines kept. llama-server reports why it ends within its last ten lines.
const LINES: usize = 64;

/// The number of bytes kept of one line.
const LINE: usize = 400;

/// The last lines of a log, without control characters and without the key.
#[derive(Default)]
pub(super) struct LogTail {
    lines: VecDeque<String>,
    secret: String,
}

impl LogTail {
    /// Creates a log that removes `secret` from all lines. llama-server logs the end of its API key.
    pub(super) fn with_secret(secret: &str) -> Self {
        Self { secret: secret.to_owned(), ..Self::default() }
    }

    /// Adds a line, and returns it in the form that may be shown.
    pub(super) fn push(&mut self, line: &[u8]) -> &str {
        let line = String::from_utf8_lossy(&line[..line.len().min(LINE)]);
        let mut line = single_line(line.trim_end());
        if !self.secret.is_empty() {
            line = line.replace(&self.secret, "…");
            let end = &self.secret[self.secret.len().saturating_sub(4)..];
            line = line.replace(&format!("****{end}"), "****");
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        self.lines.back().expect("one was just pushed")
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// Returns the last `count` lines that are not empty: errors (`E …`) only, if there are any.
    pub(super) fn last(&self, count: usize) -> Vec<&str> {
        let said = || self.lines.iter().map(String::as_str).filter(|line| !line.trim().is_empty());
        let is_error = |line: &&str| {
            line.starts_with("E ")
                || line.contains(" E ")
                || line.to_ascii_lowercase().contains("error")
                || is_abort(line)
        };
        let errors: Vec<&str> = said().filter(is_error).collect();
        let lines = if errors.is_empty() { said().collect() } else { errors };
        lines[lines.len().saturating_sub(count)..].to_vec()
    }
}

/// Returns true for `DIR/FILE.cpp:LINE: reason`, which llama.cpp prints before it aborts. A debugger's backtrace may
/// follow.
fn is_abort(line: &str) -> bool {
    let Some((_, place)) = line.split_once(".cpp:").filter(|_| !line.starts_with('#')) else { return false };
    place.split_once(": ").is_some_and(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backtrace_does_not_hide_why_it_aborted() {
        let mut tail = LogTail::default();
        for line in [
            "I loading",
            "/src/ggml-rpc.cpp:547: Failed to connect to 127.0.0.1:50052",
            "30\t../sysdeps/unix/sysv/linux/wait4.c: No such file or directory.",
            "#1  0x000055ac9ec648cb in ggml_abort () at /src/ggml.cpp:12: 3",
            "[Inferior 1 (process 10367) detached]",
        ] {
            tail.push(line.as_bytes());
        }
        assert_eq!(tail.last(3), ["/src/ggml-rpc.cpp:547: Failed to connect to 127.0.0.1:50052"]);
    }

    #[test]
    fn the_tail_is_bounded_and_has_neither_control_characters_nor_the_secret() {
        let mut tail = LogTail::with_secret("sekrit1234");
        for number in 0..1000 {
            tail.push(format!("line {number} \u{1b}[31m sekrit1234 key ****1234").as_bytes());
        }
        assert_eq!(tail.lines.len(), LINES);
        assert_eq!(tail.last(1), ["line 999  [31m … key ****"]);
        tail.push(b"E srv: couldn't bind\r\n");
        tail.push(b"I bye");
        assert_eq!(tail.last(2), ["E srv: couldn't bind"]);
    }
}
