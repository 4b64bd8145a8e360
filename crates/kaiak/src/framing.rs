//! Splits a byte stream into message bodies, and frames bodies to send: `Content-Length: N`, an empty line, N bytes.
//! Pure.
//!
//! Each error in the input is reported once, and then the decoder finds the next frame. A body that is too large is
//! skipped. After a malformed header, everything up to the next `Content-Length` is skipped.

/// The largest body. Source: the seed's "Maximum 10MB"; a body of exactly this size is accepted.
pub(super) const MAX_BODY: u64 = 10 * 1024 * 1024;

/// The largest body that is skipped. After a larger one the stream cannot be used any more.
const MAX_SKIP: u64 = 64 * 1024 * 1024;

/// The largest header block, in bytes.
const MAX_HEADER: usize = 8 * 1024;

/// The header that begins a frame, in lower case. It is searched for after a malformed header.
const LENGTH_HEADER: &[u8] = b"content-length";

const HEADER_TOO_LONG: &str = "the header block is longer than 8 KiB";

/// A result of the decoder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Body(Vec<u8>),
    /// A header that cannot be used. Decoding goes on after it.
    Malformed(&'static str),
    /// A body that is skipped. Holds its announced size in bytes.
    TooLarge(u64),
    /// A body that is too large to skip. Holds its announced size in bytes. Nothing after it can be decoded.
    TooLargeToSkip(u64),
}

/// Decodes frames from bytes in pieces of any size. Keeps at most one frame in memory.
#[derive(Default)]
pub(super) struct Decoder {
    state: State,
}

enum State {
    Header(HeaderBlock),
    Body {
        body: Vec<u8>,
        length: usize,
    },
    /// In a body that is skipped. Holds the bytes that are left of it.
    Skip(u64),
    /// After a malformed header, before the next frame. Holds the last bytes, which may be the start of
    /// `Content-Length`.
    Resync(Vec<u8>),
    /// Nothing more is decoded.
    Closed,
}

impl Default for State {
    fn default() -> Self {
        Self::Header(HeaderBlock::default())
    }
}

/// A header block that is not complete.
#[derive(Default)]
struct HeaderBlock {
    bytes: Vec<u8>,
    /// The start of the line that is being read.
    line_start: usize,
    /// The fields of the lines before it.
    fields: HeaderFields,
}

#[derive(Clone, Copy, Default)]
struct HeaderFields {
    length: Option<u64>,
    bad_charset: bool,
}

/// One line of a header block.
enum HeaderLine {
    Field,
    /// The empty line after the last field.
    End,
    Malformed(&'static str),
}

impl Decoder {
    /// Takes bytes off the front of `input` until a frame is complete or nothing is left.
    pub(super) fn next(&mut self, input: &mut &[u8]) -> Option<Frame> {
        loop {
            let state = std::mem::replace(&mut self.state, State::Closed);
            let (state, frame) = match state {
                State::Closed => {
                    *input = &[];
                    return None;
                }
                State::Header(block) => block.read(input),
                State::Body { mut body, length } => {
                    move_bytes(input, length - body.len(), &mut body);
                    if body.len() == length {
                        (State::default(), Some(Frame::Body(body)))
                    } else {
                        (State::Body { body, length }, None)
                    }
                }
                State::Skip(left) => {
                    let skipped = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    *input = &input[skipped..];
                    let left = left - skipped as u64;
                    (if left == 0 { State::default() } else { State::Skip(left) }, None)
                }
                State::Resync(tail) => (resync(tail, input), None),
            };
            self.state = state;
            if frame.is_some() {
                return frame;
            }
            if input.is_empty() {
                return None;
            }
        }
    }
}

/// Moves at most `count` bytes from the front of `input` to the end of `into`.
fn move_bytes(input: &mut &[u8], count: usize, into: &mut Vec<u8>) {
    let (moved, rest) = input.split_at(count.min(input.len()));
    into.extend_from_slice(moved);
    *input = rest;
}

impl HeaderBlock {
    /// Reads up to the end of the line or of the input.
    fn read(mut self, input: &mut &[u8]) -> (State, Option<Frame>) {
        let line_end = input.iter().position(|byte| *byte == b'\n').map(|index| index + 1);
        let room = MAX_HEADER - self.bytes.len();
        move_bytes(input, line_end.unwrap_or(input.len()).min(room), &mut self.bytes);
        let line = &self.bytes[self.line_start..];
        if line.last() != Some(&b'\n') {
            // Reported as soon as it is certain, because a client that sends JSON without headers waits for an answer.
            if let Some(why) = cannot_be_header(line) {
                return malformed(line, why);
            }
            if self.bytes.len() == MAX_HEADER {
                return malformed(line, HEADER_TOO_LONG);
            }
            return (State::Header(self), None);
        }
        match self.fields.read(line) {
            HeaderLine::Field if self.bytes.len() == MAX_HEADER => {
                (State::Resync(Vec::new()), Some(Frame::Malformed(HEADER_TOO_LONG)))
            }
            HeaderLine::Field => {
                self.line_start = self.bytes.len();
                (State::Header(self), None)
            }
            HeaderLine::Malformed(why) => malformed(line, why),
            // Empty lines between frames are ignored.
            HeaderLine::End if self.line_start == 0 => (State::default(), None),
            HeaderLine::End => self.fields.begin_body(),
        }
    }
}

impl HeaderFields {
    fn read(&mut self, line: &[u8]) -> HeaderLine {
        let Ok(line) = std::str::from_utf8(line) else {
            return HeaderLine::Malformed("a header is not text");
        };
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            return HeaderLine::End;
        }
        let Some((name, value)) = line.split_once(':').filter(|(name, _)| name.bytes().all(is_name)) else {
            return HeaderLine::Malformed("a line is no header");
        };
        let value = value.trim();
        if name.trim_end().eq_ignore_ascii_case("content-length") {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            if !digits {
                return HeaderLine::Malformed("Content-Length is not a number");
            }
            // A number that does not fit is larger than any limit.
            let length = value.parse().unwrap_or(u64::MAX);
            if self.length.replace(length).is_some_and(|other| other != length) {
                return HeaderLine::Malformed("Content-Length is given twice");
            }
        } else if name.trim_end().eq_ignore_ascii_case("content-type") {
            self.bad_charset = charset(value).is_some_and(|charset| {
                !charset.eq_ignore_ascii_case("utf-8") && !charset.eq_ignore_ascii_case("utf8")
            });
        }
        HeaderLine::Field
    }

    /// Returns the state after the header block, and the error if the body cannot be used.
    fn begin_body(self) -> (State, Option<Frame>) {
        match self.length {
            None => (State::Resync(Vec::new()), Some(Frame::Malformed("there is no Content-Length"))),
            Some(bytes) if bytes > MAX_SKIP => (State::Closed, Some(Frame::TooLargeToSkip(bytes))),
            Some(bytes) if bytes > MAX_BODY => (State::Skip(bytes), Some(Frame::TooLarge(bytes))),
            Some(bytes) if self.bad_charset => {
                (State::Skip(bytes), Some(Frame::Malformed("the charset is not utf-8")))
            }
            Some(0) => (State::default(), None),
            Some(bytes) => {
                let length = usize::try_from(bytes).expect("not more than MAX_BODY");
                // Memory is taken as the bytes come, and not for the announced length.
                (State::Body { body: Vec::new(), length }, None)
            }
        }
    }
}

fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    })
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b' ')
}

/// Returns why the start of a line can never become a header, if that is so.
fn cannot_be_header(line: &[u8]) -> Option<&'static str> {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let bad = name.iter().any(|byte| !is_name(*byte) && *byte != b'\r');
    bad.then_some("a line is no header")
}

/// Gives up a header block. A `Content-Length` later in its last line may begin the next frame.
fn malformed(line: &[u8], why: &'static str) -> (State, Option<Frame>) {
    // The line itself may begin with the `Content-Length` that is malformed.
    let rest = line.get(1..).unwrap_or_default();
    let state = match find_length_header(rest) {
        Some(index) => {
            let mut fields = HeaderFields::default();
            let bytes = rest[index..].to_vec();
            match bytes.last() {
                Some(b'\n') if matches!(fields.read(&bytes), HeaderLine::Field) => {
                    State::Header(HeaderBlock { line_start: bytes.len(), bytes, fields })
                }
                Some(b'\n') => State::Resync(Vec::new()),
                _ => State::Header(HeaderBlock { bytes, line_start: 0, fields }),
            }
        }
        None => State::Resync(possible_prefix(rest)),
    };
    (state, Some(Frame::Malformed(why)))
}

/// Searches `input` for the next `Content-Length`. `seen` is the end of the input before it, in which the name may
/// begin.
fn resync(mut seen: Vec<u8>, input: &mut &[u8]) -> State {
    let before = seen.len();
    seen.extend_from_slice(input);
    if let Some(index) = find_length_header(&seen) {
        let end = index + LENGTH_HEADER.len();
        *input = &input[end.saturating_sub(before).min(input.len())..];
        return State::Header(HeaderBlock { bytes: seen[index..end].to_vec(), ..HeaderBlock::default() });
    }
    *input = &[];
    State::Resync(possible_prefix(&seen))
}

/// Returns as much of the end as may be the start of `Content-Length`.
fn possible_prefix(bytes: &[u8]) -> Vec<u8> {
    bytes[bytes.len().saturating_sub(LENGTH_HEADER.len() - 1)..].to_vec()
}

fn find_length_header(bytes: &[u8]) -> Option<usize> {
    bytes.windows(LENGTH_HEADER.len()).position(|window| window.eq_ignore_ascii_case(LENGTH_HEADER))
}

/// Frames one body.
pub(super) fn encode(body: &[u8]) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(input: &[u8]) -> Vec<Frame> {
        let mut decoder = Decoder::default();
        let mut rest = input;
        let mut whole = Vec::new();
        while let Some(frame) = decoder.next(&mut rest) {
            whole.push(frame);
        }
        // The result is the same if the bytes come one at a time.
        let mut decoder = Decoder::default();
        let mut pieces = Vec::new();
        for byte in input {
            let mut piece = std::slice::from_ref(byte);
            while let Some(frame) = decoder.next(&mut piece) {
                pieces.push(frame);
            }
        }
        let malformed_count =
            |frames: &[Frame]| frames.iter().filter(|f| matches!(f, Frame::Malformed(_))).count();
        assert_eq!(malformed_count(&whole), malformed_count(&pieces), "{}", String::from_utf8_lossy(input));
        assert!(
            whole
                .iter()
                .filter(|f| !matches!(f, Frame::Malformed(_)))
                .eq(pieces.iter().filter(|f| !matches!(f, Frame::Malformed(_))))
        );
        whole
    }

    fn body(text: &str) -> Frame {
        Frame::Body(text.as_bytes().to_vec())
    }

    #[test]
    fn headers_come_in_any_order_and_case() {
        for head in [
            "Content-Length: 2\r\n\r\n",
            "content-length:2\r\n\r\n",
            "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
            "Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=\"utf8\"\r\n\r\n",
            "X-Other: x\r\nCONTENT-LENGTH:   2 \r\n\r\n",
            "Content-Length: 2\n\n",
            "\r\nContent-Length: 2\r\n\r\n",
            "Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n",
        ] {
            assert_eq!(frames(format!("{head}{{}}").as_bytes()), [body("{}")], "{head}");
        }
        assert_eq!(
            frames(b"Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]"),
            [body("{}"), body("[]")]
        );
        assert_eq!(frames(b"Content-Length: 4\r\n\r\n{}"), []);
        assert_eq!(frames(&encode("é".as_bytes())), [body("é")]);
    }

    #[test]
    fn after_a_broken_header_the_next_frame_is_found() {
        for broken in [
            "Foo: 1\r\n\r\n",
            "Content-Length: abc\r\n\r\n",
            "Content-Length: -5\r\n\r\n",
            "Content-Length: 1e3\r\n\r\n",
            "Content-Length: +3\r\n\r\n",
            "Content-Length:\r\n\r\n",
            "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "{\"jsonrpc\":\"2.0\",\"method\":\"kaiak/session/status\"}\n",
            "{\"jsonrpc\":\"2.0\"}",
            "Foo: 1\r\n\r\n{\"some\": \"body\"}",
            "Content-Length: 2\r\nContent-Type: a/b; charset=utf-16\r\n\r\n{}",
            "\0\0\0\0",
            "ent-Length: 3\r\n\r\n",
        ] {
            let input = format!("{broken}Content-Length: 2\r\n\r\n{{}}");
            let found = frames(input.as_bytes());
            assert!(
                matches!(&found[..], [Frame::Malformed(_), Frame::Body(b)] if b == b"{}"),
                "{broken:?} {found:?}"
            );
        }
        let long = format!("{}Content-Length: 2\r\n\r\n{{}}", "X: y\r\n".repeat(10_000));
        assert!(matches!(&frames(long.as_bytes())[..], [Frame::Malformed(_), Frame::Body(_)]));
        let line = format!("X{}: y\r\n\r\nContent-Length: 2\r\n\r\n{{}}", "x".repeat(100_000));
        assert!(matches!(&frames(line.as_bytes())[..], [Frame::Malformed(_), Frame::Body(_)]));
    }

    #[test]
    fn a_wrong_length_costs_no_more_than_the_next_frame() {
        // Too short: the rest of the body is no header.
        let found = frames(b"Content-Length: 5\r\n\r\n{\"a\": 1}Content-Length: 2\r\n\r\n{}");
        assert_eq!(found, [body("{\"a\":"), Frame::Malformed("a line is no header"), body("{}")]);
        // Too long: the start of the next frame is part of the body.
        let found =
            frames(b"Content-Length: 4\r\n\r\n{}Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]");
        assert!(
            matches!(&found[..], [Frame::Body(_), Frame::Malformed(_), Frame::Body(b)] if b == b"[]"),
            "{found:?}"
        );
    }

    #[test]
    fn a_large_body_is_skipped_and_a_huge_one_ends_decoding() {
        let large = MAX_BODY + 1;
        let mut input = format!("Content-Length: {large}\r\n\r\n").into_bytes();
        input.resize(input.len() + usize::try_from(large).unwrap(), b'x');
        input.extend_from_slice(b"Content-Length: 2\r\n\r\n{}");
        let mut decoder = Decoder::default();
        let mut rest = &input[..];
        assert_eq!(decoder.next(&mut rest), Some(Frame::TooLarge(large)));
        assert_eq!(decoder.next(&mut rest), Some(body("{}")));

        for length in ["99999999999", "99999999999999999999999999"] {
            let input = format!("Content-Length: {length}\r\n\r\nContent-Length: 2\r\n\r\n{{}}");
            let found = frames(input.as_bytes());
            assert!(matches!(found[..], [Frame::TooLargeToSkip(_)]), "{found:?}");
        }
        let input = format!("Content-Length: {MAX_BODY}\r\n\r\n");
        assert_eq!(frames(input.as_bytes()), []);
    }

    #[test]
    fn garbage_never_takes_more_memory_than_a_header() {
        let mut decoder = Decoder::default();
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let piece: Vec<u8> = (0..50)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33).to_be_bytes()[7]
                })
                .collect();
            let mut piece = &piece[..];
            while decoder.next(&mut piece).is_some() {}
            let capacity = match &decoder.state {
                State::Header(block) => block.bytes.capacity(),
                State::Body { body, .. } => body.capacity(),
                State::Resync(tail) => tail.capacity(),
                State::Skip(_) | State::Closed => 0,
            };
            assert!(capacity <= 2 * MAX_HEADER, "{capacity}");
        }
    }
}
