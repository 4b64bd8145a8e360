//! The last lines that a child wrote, for the error message when it dies.

use std::collections::VecDeque;

use crate::provider::llama::shown;

/// Lines kept. llama-server's reason to die is among the last ten.
const LINES: usize = 64;

/// Bytes kept of one line.
const LINE: usize = 400;

/// The last lines of a log, without control characters and without the key.
#[derive(Default)]
pub struct Tail {
    lines: VecDeque<String>,
    secret: String,
}

impl Tail {
    /// `secret` will not be kept, in whatever line it comes; llama-server shows the end of its key.
    pub fn without(secret: &str) -> Self {
        Self { secret: secret.to_owned(), ..Self::default() }
    }

    /// Keeps one line and gives it as it may be shown.
    pub fn push(&mut self, line: &[u8]) -> &str {
        let line = String::from_utf8_lossy(&line[..line.len().min(LINE)]);
        let mut line = shown(line.trim_end());
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

    pub fn contains(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// Up to `count` lines that say something, errors (`E …`) rather than others.
    pub fn last(&self, count: usize) -> Vec<&str> {
        let said = || self.lines.iter().map(String::as_str).filter(|line| !line.trim().is_empty());
        let is_error = |line: &&str| {
            line.starts_with("E ") || line.contains(" E ") || line.to_ascii_lowercase().contains("error")
        };
        let errors: Vec<&str> = said().filter(is_error).collect();
        let lines = if errors.is_empty() { said().collect() } else { errors };
        lines[lines.len().saturating_sub(count)..].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_plain_and_keeps_no_secret() {
        let mut tail = Tail::without("sekrit1234");
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
