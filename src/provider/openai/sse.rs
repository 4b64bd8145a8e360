//! Server-sent events: bytes in any cut → lines → the payload of each `data:` line.

use std::io::{self, Read};

/// Bytes that one line may have: 1 MiB. The longest honest one is a whole tool call in one delta.
pub const LINE_LIMIT: usize = 1024 * 1024;

/// Bytes asked for in one read. ureq fills it with everything the socket has ready, so the lines of
/// one fill are what arrived together.
const READ: usize = 32 * 1024;

/// Reads bytes, gives lines. Memory: at most [`LINE_LIMIT`] and one read.
#[derive(Default)]
pub struct LineReader {
    buffer: Vec<u8>,
    /// `buffer[start..end]` is what has been read and not yet given out; up to `seen` it has no newline.
    start: usize,
    seen: usize,
    end: usize,
}

/// A line is longer than [`LINE_LIMIT`].
#[derive(Debug, PartialEq, Eq)]
pub struct LineTooLong;

/// What one line means.
#[derive(Debug, PartialEq, Eq)]
pub enum SseLine<'a> {
    Data(&'a [u8]),
    /// `data: [DONE]`, OpenAI's end of stream.
    Done,
    /// A comment, a blank line, or a field that is of no use here.
    Other,
}

impl LineReader {
    /// Reads once and says how many bytes came; 0 is the end. Blocks until something comes.
    pub fn fill(&mut self, from: &mut impl Read) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.seen -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < self.end + READ {
            self.buffer.resize(self.end + READ, 0);
        }
        let count = from.read(&mut self.buffer[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// The next complete line without its ending (`\n` or `\r\n`), or `None` until more is read.
    ///
    /// # Errors
    ///
    /// [`TooLong`], also for a line whose end has not come yet.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        let fresh = &self.buffer[self.seen..self.end];
        let Some(newline) = fresh.iter().position(|&byte| byte == b'\n') else {
            self.seen = self.end;
            return if self.end - self.start > LINE_LIMIT { Err(LineTooLong) } else { Ok(None) };
        };
        let line = self.start..self.seen + newline;
        self.start = line.end + 1;
        self.seen = self.start;
        if line.len() > LINE_LIMIT { Err(LineTooLong) } else { Ok(Some(trim_cr(&self.buffer[line]))) }
    }

    /// What is left when the stream has ended without a last newline.
    pub fn remainder(&mut self) -> &[u8] {
        let rest = self.start..self.end;
        (self.start, self.seen) = (self.end, self.end);
        trim_cr(&self.buffer[rest])
    }
}

fn trim_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

impl<'a> SseLine<'a> {
    /// Every `data:` line is an event of its own: no known server spreads one over several lines, and
    /// waiting for the blank line that ends an event would hold a token back.
    pub fn parse(line: &'a [u8]) -> Self {
        let Some(data) = line.strip_prefix(b"data:") else { return Self::Other };
        match data.trim_ascii() {
            b"" => Self::Other,
            b"[DONE]" => Self::Done,
            data => Self::Data(data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in pieces of `step`.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn payloads(stream: &[u8], step: usize) -> Vec<String> {
        let (mut lines, mut from, mut found) = (LineReader::default(), Pieces(stream, step), Vec::new());
        let mut note = |line: &[u8]| match SseLine::parse(line) {
            SseLine::Data(data) => found.push(String::from_utf8_lossy(data).into_owned()),
            SseLine::Done => found.push("DONE".to_owned()),
            SseLine::Other => {}
        };
        while lines.fill(&mut from).unwrap() > 0 {
            while let Some(line) = lines.next_line().unwrap() {
                note(line);
            }
        }
        note(lines.remainder());
        found
    }

    #[test]
    fn the_cut_does_not_matter() {
        let stream =
            ": ping\r\n\r\ndata: {\"a\":\"ü\"}\r\n\r\nevent: x\nid:1\ndata:two\n\n\ndata: \ndata: [DONE]"
                .as_bytes();
        for step in 1..=stream.len() {
            assert_eq!(payloads(stream, step), ["{\"a\":\"ü\"}", "two", "DONE"], "step {step}");
        }
    }

    #[test]
    fn an_endless_line_is_refused_before_it_is_stored() {
        let mut lines = LineReader::default();
        let mut endless = io::repeat(b'x');
        let refused = (0..1000).any(|_| {
            lines.fill(&mut endless).unwrap();
            lines.next_line().is_err()
        });
        assert!(refused);
        assert!(lines.buffer.len() <= LINE_LIMIT + 2 * READ);
    }
}
