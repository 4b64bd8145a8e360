//! Holds the arguments of a call to the text of the request.
//!
//! The model is shown nothing but the request, copies names and texts out of it byte by byte, and slips where they
//! repeat themselves. Here it is held to the bytes that are there: to whole words, whole paths and addresses, to the
//! numbers, and to the end of a quoted text. Where several ends are possible the model chooses, but a text without
//! quotes that cuts a phrase is less likely. No two arguments of a call are copied from the same place, a change changes
//! something, and a line of piped data that is asked for by its place is that line.

mod bounds;
mod piped;
mod request;

#[cfg(test)]
mod tests;

use self::request::Request;
use crate::{
    CopyKind,
    numbers::{numbers, range},
};

/// The longest request that is searched, in bytes. The model is not shown all of a longer one.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// The kinds of a tool's arguments, by name. Other arguments are free.
pub(crate) type ArgumentKinds = Vec<(Vec<u8>, CopyKind)>;

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
pub(crate) struct CopyState {
    position: Position,
    /// The copied arguments so far.
    copied: Vec<(CopyKind, Vec<u8>)>,
    /// By how much they are less likely than the model takes them to be, as a natural logarithm.
    penalty: f32,
}

#[derive(Clone, Debug, Default)]
enum Position {
    #[default]
    Between,
    /// In the name of an argument.
    Name(Vec<u8>),
    /// Before the value of an argument.
    Value(Option<CopyKind>),
    Number {
        kind: Option<CopyKind>,
        digits: Vec<u8>,
    },
    Text(Text),
}

/// A string argument so far.
#[derive(Clone, Debug)]
struct Text {
    kind: Option<CopyKind>,
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

impl CopyState {
    /// Returns how much less likely the arguments so far are than the model takes them to be, as a natural logarithm.
    pub(crate) fn penalty(&self) -> f32 {
        self.penalty
    }
}

impl CopyRules {
    /// Returns `None` for a request that is too long to be searched.
    pub(crate) fn new(request: &str) -> Option<Self> {
        if request.len() > MAX_REQUEST_BYTES {
            return None;
        }
        let mut known = numbers(request);
        if !known.is_empty() {
            known.extend(known.clone().iter().map(|number| number + 1));
            known.extend([0, 1]);
        }
        let numbers = known.iter().map(u32::to_string).collect();
        let range = range(request).map(|(first, last)| [first, last].map(|line| line.to_string()));
        Some(Self { request: Request::new(request), numbers, range })
    }

    /// Returns true if an answer that is not a call may begin with `text`, or be `text` if it is the `whole`.
    pub(crate) fn may_answer(&self, text: &[u8], whole: bool) -> bool {
        self.request.may_answer(text, whole)
    }

    /// Returns the state after `byte` in the arguments of a tool of these `kinds`, or `None` if no text of the request
    /// goes on with it.
    pub(crate) fn step(&self, kinds: &ArgumentKinds, state: CopyState, byte: u8) -> Option<CopyState> {
        let CopyState { position, mut copied, mut penalty } = state;
        let kind_of = |name: &[u8]| kinds.iter().find_map(|(known, kind)| (known == name).then_some(*kind));
        let position = match (position, byte) {
            (Position::Between, b'"') => Position::Name(Vec::new()),
            (Position::Between, _) => Position::Between,
            (Position::Name(name), b'"') => Position::Value(kind_of(&name)),
            (Position::Name(mut name), _) => {
                name.push(byte);
                Position::Name(name)
            }
            (Position::Value(kind), b'"') => {
                Position::Text(Text { kind, bytes: Vec::new(), escape: Escape::None })
            }
            (Position::Value(kind), b'0'..=b'9') => self.number(kind, Vec::new(), byte)?,
            (Position::Value(_), b',' | b'}') => Position::Between,
            (Position::Value(kind), _) => Position::Value(kind),
            (Position::Number { kind, digits }, _) => self.number(kind, digits, byte)?,
            (Position::Text(Text { kind, bytes, escape: Escape::None }), b'"') => {
                if let Some(kind) = kind {
                    if !self.request.has_whole(kind, &bytes) {
                        return None;
                    }
                    penalty += self.request.penalty(kind, &bytes);
                    copied.push((kind, bytes));
                    if !changes_something(&copied) || !self.request.are_apart(&copied) {
                        return None;
                    }
                }
                Position::Between
            }
            (Position::Text(text), byte) => self.text(text, byte)?,
        };
        Some(CopyState { position, copied, penalty })
    }

    fn number(&self, kind: Option<CopyKind>, mut digits: Vec<u8>, byte: u8) -> Option<Position> {
        let known = match (&self.range, kind) {
            (Some([first, _]), Some(CopyKind::FirstLine)) => std::slice::from_ref(first),
            (Some([_, last]), Some(CopyKind::LastLine)) => std::slice::from_ref(last),
            _ => &self.numbers[..],
        };
        let any = |fits: fn(&[u8], &[u8]) -> bool, digits: &[u8]| {
            known.is_empty() || known.iter().any(|number| fits(number.as_bytes(), digits))
        };
        if byte.is_ascii_digit() {
            digits.push(byte);
            return any(<[u8]>::starts_with, &digits).then_some(Position::Number { kind, digits });
        }
        any(|number, digits| number == digits, &digits).then_some(Position::Between)
    }

    fn text(&self, text: Text, byte: u8) -> Option<Position> {
        let Text { kind, mut bytes, escape } = text;
        let has = |bytes: &[u8]| kind.is_none_or(|kind| self.request.has_start(kind, bytes));
        let escape = match escape {
            Escape::None if byte == b'\\' => {
                // A backslash is only allowed if something can follow it.
                let follows = b"\"\\\n\t\r\x08\x0c".iter().any(|&next| has(&[&bytes[..], &[next]].concat()));
                let text = Text { kind, bytes, escape: Escape::Begun };
                return follows.then_some(Position::Text(text));
            }
            Escape::None => {
                bytes.push(byte);
                Escape::None
            }
            Escape::Begun if byte == b'u' => {
                return Some(Position::Text(Text { kind, bytes, escape: Escape::Unicode(String::new()) }));
            }
            Escape::Begun => {
                bytes.push(unescaped(byte));
                Escape::None
            }
            Escape::Unicode(mut digits) => {
                digits.push(char::from(byte));
                if digits.len() < 4 {
                    return Some(Position::Text(Text { kind, bytes, escape: Escape::Unicode(digits) }));
                }
                // Half of a surrogate pair is refused: the request has the character itself, which needs no escape.
                let character = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?;
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                Escape::None
            }
        };
        has(&bytes).then_some(Position::Text(Text { kind, bytes, escape }))
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

/// Returns false if a call would replace an empty text, or a text by itself.
fn changes_something(copied: &[(CopyKind, Vec<u8>)]) -> bool {
    let text = |kind| copied.iter().find_map(|(known, text)| (*known == kind).then_some(text));
    match (text(CopyKind::OldText), text(CopyKind::NewText)) {
        (Some(old), new) => !old.is_empty() && new != Some(old),
        (None, _) => true,
    }
}
