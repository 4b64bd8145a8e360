//! The text between calls: what in it begins a call or a thought.

use super::{
    super::wrappers::{Opening, THOUGHTS, Wrapper, opening, remains},
    BodyScanner, State, ToolCallParser,
};

/// The thing that begins at a place in the text.
enum Found {
    Nothing,
    /// More text is needed.
    Partial,
    /// So many bytes that belong to the call before.
    Remains(usize),
    Thought(&'static str, &'static str),
    Wrapper(&'static Wrapper),
}

impl ToolCallParser {
    /// Passes text on up to the next opening. Returns false if more input is needed.
    pub(super) fn prose(&mut self, out: &mut String) -> bool {
        let mut at = 0;
        let mut found = Found::Nothing;
        while let Some(&byte) = self.buffer.as_bytes().get(at) {
            self.code.end_ticks(byte);
            let begins_line = self.code.at_line_start() && !byte.is_ascii_whitespace();
            if (matches!(byte, b'<' | b'[') || begins_line) && !self.code.is_code() {
                found = self.found(&self.buffer[at..], begins_line);
                if !matches!(found, Found::Nothing) {
                    break;
                }
            }
            self.code.push(byte);
            if self.at_start && !byte.is_ascii_whitespace() {
                self.text_came();
            }
            at += 1;
        }
        // White space around calls is dropped with them.
        let kept = if self.at_start { 0 } else { at };
        out.push_str(&self.buffer[..kept]);
        self.buffer.drain(..kept);
        self.enter(&found, at - kept, out)
    }

    /// Goes on with what was found at `buffer[at..]`. Returns false if more input is needed.
    fn enter(&mut self, found: &Found, at: usize, out: &mut String) -> bool {
        match *found {
            Found::Nothing | Found::Partial => return false,
            Found::Remains(length) => {
                self.buffer.drain(..at + length);
            }
            Found::Thought(open, close) => {
                out.push_str(&self.buffer[..at + open.len()]);
                self.buffer.drain(..at + open.len());
                self.thought = Some(String::new());
                self.state = State::Thinking(close);
            }
            Found::Wrapper(wrapper) => {
                if self.calls.len() == self.calls_before {
                    self.began_line = self.code.at_line_start();
                }
                let body = at + wrapper.open.len();
                self.state = State::InWrapper { wrapper, body, scanner: BodyScanner::new(wrapper) };
            }
        }
        true
    }

    fn found(&self, rest: &str, begins_line: bool) -> Found {
        let mut partial = false;
        if self.at_start && !self.calls.is_empty() {
            match remains(rest) {
                Some(0) => {}
                Some(length) => return Found::Remains(length),
                None => partial = true,
            }
        }
        if self.thought.is_some() {
            if let Some((open, close)) = THOUGHTS.iter().find(|(open, _)| rest.starts_with(open)) {
                return Found::Thought(open, close);
            }
            partial |= THOUGHTS.iter().any(|(open, _)| open.starts_with(rest));
        }
        match opening(rest, begins_line) {
            Opening::Whole(wrapper) => Found::Wrapper(wrapper),
            Opening::Partial => Found::Partial,
            Opening::None if partial => Found::Partial,
            Opening::None => Found::Nothing,
        }
    }
}
