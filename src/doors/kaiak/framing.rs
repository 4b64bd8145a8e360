//! Bytes into message bodies and back: `Content-Length: N`, an empty line, N bytes. Pure.
//!
//! What is wrong with a frame is told once, and then the reader finds its way back: a body that is too large
//! is thrown away as it comes, and after a broken header everything is up to the next `Content-Length`.

/// The largest body. Source: the seed's "Maximum 10MB"; exactly that much passes.
pub(super) const MAX_BODY: u64 = 10 * 1024 * 1024;

/// The largest body that is waited for only to be thrown away.
const MAX_SKIP: u64 = 64 * 1024 * 1024;

/// The largest header block, in bytes.
const MAX_HEADER: usize = 8 * 1024;

/// The only header that counts, as it is searched for.
const LENGTH_HEADER: &[u8] = b"content-length";

/// What the reader makes of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Body(Vec<u8>),
    /// A header that cannot be used; reading goes on behind it.
    Malformed(&'static str),
    /// A body of so many bytes was announced; it is thrown away.
    TooLarge(u64),
    /// One of so many bytes that it is not waited for. Nothing after it can be read.
    TooLargeToSkip(u64),
}

/// Takes bytes as they come and gives frames as they are complete. Keeps one frame at most.
#[derive(Default)]
pub(super) struct Decoder {
    state: State,
}

enum State {
    /// In the header block: what has come of it.
    Header {
        block: Vec<u8>,
        line_start: usize,
        seen: HeaderFields,
    },
    Body {
        body: Vec<u8>,
        length: usize,
    },
    /// So many bytes of a body are thrown away.
    Skip(u64),
    /// Between frames, nobody knows where: the last bytes, which may be the start of `Content-Length`.
    Resync(Vec<u8>),
    Closed,
}

impl Default for State {
    fn default() -> Self {
        Self::Header { block: Vec::new(), line_start: 0, seen: HeaderFields::default() }
    }
}

#[derive(Clone, Copy, Default)]
struct HeaderFields {
    length: Option<u64>,
    bad_charset: bool,
}

/// One line of a header block.
enum HeaderLine {
    Field,
    End,
    Malformed(&'static str),
}

impl Decoder {
    /// Takes the next bytes off the front of `input` until a frame is complete or nothing is left.
    pub(super) fn next(&mut self, input: &mut &[u8]) -> Option<Frame> {
        loop {
            let state = std::mem::replace(&mut self.state, State::Closed);
            let (state, frame) = match state {
                State::Closed => {
                    *input = &[];
                    return None;
                }
                State::Header { block, line_start: line, seen } => read_header(block, line, seen, input),
                State::Body { mut body, length } => {
                    move_bytes(input, length - body.len(), &mut body);
                    if body.len() == length {
                        (State::default(), Some(Frame::Body(body)))
                    } else {
                        (State::Body { body, length }, None)
                    }
                }
                State::Skip(left) => {
                    let gone = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    *input = &input[gone..];
                    let left = left - gone as u64;
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

fn move_bytes(input: &mut &[u8], wanted: usize, into: &mut Vec<u8>) {
    let (taken, rest) = input.split_at(wanted.min(input.len()));
    into.extend_from_slice(taken);
    *input = rest;
}

fn read_header(
    mut block: Vec<u8>,
    line: usize,
    mut seen: HeaderFields,
    input: &mut &[u8],
) -> (State, Option<Frame>) {
    let end = input.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    let room = MAX_HEADER - block.len();
    move_bytes(input, end.unwrap_or(input.len()).min(room), &mut block);
    if block.last() != Some(&b'\n') {
        let start = &block[line..];
        // Told as soon as it is certain: who sends JSON without headers waits for an answer.
        if let Some(why) = cannot_be_header(start) {
            return malformed(start, why);
        }
        if block.len() == MAX_HEADER {
            return malformed(start, "the header block is longer than 8 KiB");
        }
        return (State::Header { block, line_start: line, seen }, None);
    }
    match seen.read(&block[line..]) {
        HeaderLine::Field => {
            let line = block.len();
            if line == MAX_HEADER {
                return (
                    State::Resync(Vec::new()),
                    Some(Frame::Malformed("the header block is longer than 8 KiB")),
                );
            }
            (State::Header { block, line_start: line, seen }, None)
        }
        HeaderLine::Malformed(why) => malformed(&block[line..], why),
        // Empty lines between frames are no frame.
        HeaderLine::End if line == 0 => (State::default(), None),
        HeaderLine::End => match seen {
            HeaderFields { length: None, .. } => {
                (State::Resync(Vec::new()), Some(Frame::Malformed("there is no Content-Length")))
            }
            HeaderFields { length: Some(bytes), .. } if bytes > MAX_SKIP => {
                (State::Closed, Some(Frame::TooLargeToSkip(bytes)))
            }
            HeaderFields { length: Some(bytes), .. } if bytes > MAX_BODY => {
                (State::Skip(bytes), Some(Frame::TooLarge(bytes)))
            }
            HeaderFields { length: Some(bytes), bad_charset: true } => {
                (State::Skip(bytes), Some(Frame::Malformed("the charset is not utf-8")))
            }
            HeaderFields { length: Some(0), .. } => (State::default(), None),
            HeaderFields { length: Some(bytes), bad_charset: false } => {
                let length = usize::try_from(bytes).expect("not more than MAX_BODY");
                // Memory comes with the bytes, not with the promise of them.
                (State::Body { body: Vec::new(), length }, None)
            }
        },
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
            // More digits than fit are more bytes than anybody waits for.
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

/// Why a line that is not complete can never be a header.
fn cannot_be_header(line: &[u8]) -> Option<&'static str> {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let bad = name.iter().any(|byte| !is_name(*byte) && *byte != b'\r');
    bad.then_some("a line is no header")
}

/// Gives up a header block; a `Content-Length` later in its last line may begin the next frame.
fn malformed(line: &[u8], why: &'static str) -> (State, Option<Frame>) {
    // Not the one that is broken itself.
    let rest = line.get(1..).unwrap_or_default();
    let state = match find_length_header(rest) {
        Some(at) => {
            let mut seen = HeaderFields::default();
            let block = rest[at..].to_vec();
            match block.last() {
                Some(b'\n') if matches!(seen.read(&block), HeaderLine::Field) => {
                    State::Header { line_start: block.len(), block, seen }
                }
                Some(b'\n') => State::Resync(Vec::new()),
                _ => State::Header { block, line_start: 0, seen },
            }
        }
        None => State::Resync(possible_prefix(rest)),
    };
    (state, Some(Frame::Malformed(why)))
}

fn resync(mut seen: Vec<u8>, input: &mut &[u8]) -> State {
    let before = seen.len();
    // Far enough to see a name that is split, and never more than what has come.
    seen.extend_from_slice(input);
    if let Some(at) = find_length_header(&seen) {
        *input = &input[(at + LENGTH_HEADER.len()).saturating_sub(before).min(input.len())..];
        return State::Header {
            block: seen[at..at + LENGTH_HEADER.len()].to_vec(),
            line_start: 0,
            seen: HeaderFields::default(),
        };
    }
    *input = &[];
    State::Resync(possible_prefix(&seen))
}

/// As much of the end as may be the start of `Content-Length`.
fn possible_prefix(bytes: &[u8]) -> Vec<u8> {
    bytes[bytes.len().saturating_sub(LENGTH_HEADER.len() - 1)..].to_vec()
}

fn find_length_header(bytes: &[u8]) -> Option<usize> {
    bytes.windows(LENGTH_HEADER.len()).position(|window| window.eq_ignore_ascii_case(LENGTH_HEADER))
}

/// One message as it is sent.
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
        // The same, however the bytes are cut.
        let mut decoder = Decoder::default();
        let mut pieces = Vec::new();
        for byte in input {
            let mut piece = std::slice::from_ref(byte);
            while let Some(frame) = decoder.next(&mut piece) {
                pieces.push(frame);
            }
        }
        let told = |frames: &[Frame]| frames.iter().filter(|f| matches!(f, Frame::Malformed(_))).count();
        assert_eq!(told(&whole), told(&pieces), "{}", String::from_utf8_lossy(input));
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
    fn a_length_that_lies_costs_no_more_than_the_next_frame() {
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
    fn a_large_body_is_thrown_away_and_a_huge_one_ends_it() {
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
            let kept = match &decoder.state {
                State::Header { block, .. } => block.capacity(),
                State::Body { body, .. } => body.capacity(),
                State::Resync(tail) => tail.capacity(),
                State::Skip(_) | State::Closed => 0,
            };
            assert!(kept <= 2 * MAX_HEADER, "{kept}");
        }
    }
}
