//! Holds the arguments of a call to the text of the request.
//!
//! The model is shown nothing but the request, copies names and texts out of it byte by byte, and slips where they
//! repeat themselves. Here it is held to the bytes that are there: to whole words, whole paths and addresses, to the
//! numbers, and to the end of a quoted name. Of piped data, only the line that is asked for by its place may be used.

mod request;

#[cfg(test)]
mod tests;

use self::request::Request;
use crate::{
    numbers::{numbers, range},
    tools::Copied,
};

/// The arguments of a tool that are copied, by name. Other arguments are free.
pub(crate) type CopiedArguments = &'static [(&'static str, Copied)];

/// Decides what the arguments of a call may be copied from.
pub(crate) struct CopyRules {
    request: Request,
    /// The numbers that a call may use, in digits: those of the request, those that follow them (after the first ten
    /// lines comes line 11), and 0 and 1, which mean all and the first. Empty if the request has no number.
    numbers: Vec<String>,
    /// The first and the last line of the range that is asked for.
    range: Option<[String; 2]>,
}

/// The position in the arguments, which are a JSON object of strings and numbers.
#[derive(Clone, Debug, Default)]
pub(crate) enum CopyState {
    #[default]
    Between,
    /// In the name of an argument.
    Name(Vec<u8>),
    /// Before the value of an argument.
    Value(Option<Copied>),
    Number {
        kind: Option<Copied>,
        digits: Vec<u8>,
    },
    Text(Text),
}

/// A string argument so far.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    kind: Option<Copied>,
    /// Without escapes.
    bytes: Vec<u8>,
    escape: Escape,
}

#[derive(Clone, Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    /// In the digits of `\uXXXX`.
    Unicode(String),
}

impl CopyRules {
    pub(crate) fn new(request: &str) -> Self {
        let mut known = numbers(request);
        if !known.is_empty() {
            known.extend(known.clone().iter().map(|number| number + 1));
            known.extend([0, 1]);
        }
        let numbers = known.iter().map(u32::to_string).collect();
        let range = range(request).map(|(first, last)| [first, last].map(|line| line.to_string()));
        Self { request: Request::new(request), numbers, range }
    }

    /// Returns the state after `byte` in the arguments of a tool of these `kinds`, or `None` if no text of the request
    /// goes on with it.
    pub(crate) fn step(&self, kinds: CopiedArguments, state: CopyState, byte: u8) -> Option<CopyState> {
        let kind_of =
            |name: &[u8]| kinds.iter().find_map(|(known, kind)| (known.as_bytes() == name).then_some(*kind));
        Some(match (state, byte) {
            (CopyState::Between, b'"') => CopyState::Name(Vec::new()),
            (CopyState::Between, _) => CopyState::Between,
            (CopyState::Name(name), b'"') => CopyState::Value(kind_of(&name)),
            (CopyState::Name(mut name), _) => {
                name.push(byte);
                CopyState::Name(name)
            }
            (CopyState::Value(kind), b'"') => {
                CopyState::Text(Text { kind, bytes: Vec::new(), escape: Escape::None })
            }
            (CopyState::Value(kind), b'0'..=b'9') => self.number(kind, Vec::new(), byte)?,
            (CopyState::Value(_), b',' | b'}') => CopyState::Between,
            (CopyState::Value(kind), _) => CopyState::Value(kind),
            (CopyState::Number { kind, digits }, _) => self.number(kind, digits, byte)?,
            (CopyState::Text(Text { kind, bytes, escape: Escape::None }), b'"') => {
                if kind.is_some_and(|kind| !self.request.has_whole(kind, &bytes)) {
                    return None;
                }
                CopyState::Between
            }
            (CopyState::Text(text), byte) => self.text(text, byte)?,
        })
    }

    fn number(&self, kind: Option<Copied>, mut digits: Vec<u8>, byte: u8) -> Option<CopyState> {
        let known = match (&self.range, kind) {
            (Some([first, _]), Some(Copied::FirstLine)) => std::slice::from_ref(first),
            (Some([_, last]), Some(Copied::LastLine)) => std::slice::from_ref(last),
            _ => &self.numbers[..],
        };
        let any = |fits: fn(&[u8], &[u8]) -> bool, digits: &[u8]| {
            known.is_empty() || known.iter().any(|number| fits(number.as_bytes(), digits))
        };
        if byte.is_ascii_digit() {
            digits.push(byte);
            return any(<[u8]>::starts_with, &digits).then_some(CopyState::Number { kind, digits });
        }
        any(|number, digits| number == digits, &digits).then_some(CopyState::Between)
    }

    fn text(&self, text: Text, byte: u8) -> Option<CopyState> {
        let Text { kind, mut bytes, escape } = text;
        let has = |bytes: &[u8]| kind.is_none_or(|kind| self.request.has_start(kind, bytes));
        let escape = match escape {
            Escape::None if byte == b'\\' => {
                // A backslash is only allowed if something can follow it.
                let follows = b"\"\\\n\t\r\x08\x0c".iter().any(|&next| has(&[&bytes[..], &[next]].concat()));
                let text = Text { kind, bytes, escape: Escape::Begun };
                return follows.then_some(CopyState::Text(text));
            }
            Escape::None => {
                bytes.push(byte);
                Escape::None
            }
            Escape::Begun if byte == b'u' => {
                return Some(CopyState::Text(Text { kind, bytes, escape: Escape::Unicode(String::new()) }));
            }
            Escape::Begun => {
                bytes.push(unescaped(byte));
                Escape::None
            }
            Escape::Unicode(mut digits) => {
                digits.push(char::from(byte));
                if digits.len() < 4 {
                    return Some(CopyState::Text(Text { kind, bytes, escape: Escape::Unicode(digits) }));
                }
                // Half of a surrogate pair is refused: the request has the character itself, which needs no escape.
                let character = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?;
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                Escape::None
            }
        };
        has(&bytes).then_some(CopyState::Text(Text { kind, bytes, escape }))
    }
}

/// The byte that is meant by the one after a backslash.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x08,
        b'f' => 0x0c,
        other => other,
    }
}
