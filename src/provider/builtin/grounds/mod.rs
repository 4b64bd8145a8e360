//! Whether what a call says stands in the request.
//!
//! A small model that is shown nothing but the request copies names and texts out of it letter by letter, and slips
//! where they repeat themselves. Here it is held to the letters that are there, to whole words, whole paths and
//! addresses, to the numbers, and to the end of what stands in quotes; which of the possible ends it takes is its own
//! choice, but a text without quotes that cuts a phrase is doubted. No two texts of a call are copied from the same
//! place, a change changes something, and a line of piped data that is asked for by its place is that line.

mod bounds;
mod piped;
mod request;

use self::request::Request;
use super::numbers::{numbers, range};

/// A longer request is not searched; such a model is not shown all of it anyway.
const LONGEST: usize = 64 << 10;

/// What somebody asked for.
pub struct Grounds {
    request: Request,
    /// In digits, what a call may count with: numbers of the request, those that follow them, as where so many lines
    /// are left out, and zero and one, which mean all and the first. None where the request has no number.
    numbers: Vec<String>,
    /// The first and the last line of the range that is asked for.
    range: Option<[String; 2]>,
}

/// Where in the arguments, which are an object of texts and numbers.
#[derive(Clone, Debug, Default)]
pub struct At {
    place: Place,
    /// The texts so far, behind their names.
    texts: Vec<(Vec<u8>, Vec<u8>)>,
    /// How much less likely they are than the model takes them to be, as a natural logarithm.
    doubt: f32,
}

#[derive(Clone, Debug, Default)]
enum Place {
    #[default]
    Between,
    Name(Vec<u8>),
    /// Behind a name.
    Value(Vec<u8>),
    Number {
        name: Vec<u8>,
        digits: Vec<u8>,
    },
    Text {
        name: Vec<u8>,
        said: Vec<u8>,
        escape: Escape,
    },
}

#[derive(Clone, Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    /// Digits of `\uXXXX`.
    Unicode(String),
}

impl At {
    /// How much less likely the texts so far are than the model takes them to be, as a natural logarithm.
    pub fn doubt(&self) -> f32 {
        self.doubt
    }
}

impl Grounds {
    pub fn new(request: &str) -> Option<Self> {
        if request.len() > LONGEST {
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

    /// Whether an answer that is no call may begin like this, or be this if it is the `whole`.
    pub fn may_say(&self, said: &[u8], whole: bool) -> bool {
        self.request.may_say(said, whole)
    }

    /// Where `byte` leads; `None` where no text of the request goes on like that.
    pub fn step(&self, at: At, byte: u8) -> Option<At> {
        let At { place, mut texts, mut doubt } = at;
        let place = match (place, byte) {
            (Place::Between, b'"') => Place::Name(Vec::new()),
            (Place::Between, _) => Place::Between,
            (Place::Name(name), b'"') => Place::Value(name),
            (Place::Name(mut name), _) => {
                name.push(byte);
                Place::Name(name)
            }
            (Place::Value(name), b'"') => Place::Text { name, said: Vec::new(), escape: Escape::None },
            (Place::Value(name), b'0'..=b'9') => self.number(name, Vec::new(), byte)?,
            (Place::Value(_), b',' | b'}') => Place::Between,
            (Place::Value(name), _) => Place::Value(name),
            (Place::Number { name, digits }, _) => self.number(name, digits, byte)?,
            (Place::Text { name, said, escape: Escape::None }, b'"') => {
                if !self.request.has_whole(&name, &said) {
                    return None;
                }
                doubt += self.request.doubt(&name, &said);
                texts.push((name, said));
                if !changes(&texts) || !self.request.apart(&texts) {
                    return None;
                }
                Place::Between
            }
            (Place::Text { name, said, escape }, byte) => self.text(name, said, escape, byte)?,
        };
        Some(At { place, texts, doubt })
    }

    fn number(&self, name: Vec<u8>, mut digits: Vec<u8>, byte: u8) -> Option<Place> {
        let known = match (&self.range, &name[..]) {
            (Some([first, _]), b"start_line") => std::slice::from_ref(first),
            (Some([_, last]), b"end_line") => std::slice::from_ref(last),
            _ => &self.numbers[..],
        };
        let any = |fits: fn(&[u8], &[u8]) -> bool, digits: &[u8]| {
            known.is_empty() || known.iter().any(|number| fits(number.as_bytes(), digits))
        };
        if byte.is_ascii_digit() {
            digits.push(byte);
            return any(<[u8]>::starts_with, &digits).then_some(Place::Number { name, digits });
        }
        any(|number, digits| number == digits, &digits).then_some(Place::Between)
    }

    fn text(&self, name: Vec<u8>, mut said: Vec<u8>, escape: Escape, byte: u8) -> Option<Place> {
        let escape = match escape {
            Escape::None if byte == b'\\' => {
                // Once it is there, something has to follow.
                let follows = b"\"\\\n\t\r\x08\x0c".iter().any(|&next| {
                    let said = [&said[..], &[next]].concat();
                    self.request.has(&name, &said)
                });
                return follows.then_some(Place::Text { name, said, escape: Escape::Begun });
            }
            Escape::None => {
                said.push(byte);
                Escape::None
            }
            Escape::Begun if byte == b'u' => {
                return Some(Place::Text { name, said, escape: Escape::Unicode(String::new()) });
            }
            Escape::Begun => {
                said.push(match byte {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    other => other,
                });
                Escape::None
            }
            Escape::Unicode(mut digits) => {
                digits.push(char::from(byte));
                if digits.len() < 4 {
                    return Some(Place::Text { name, said, escape: Escape::Unicode(digits) });
                }
                // Half of a pair is no character; the request has the whole one, which needs no escape.
                let character = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?;
                said.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                Escape::None
            }
        };
        self.request.has(&name, &said).then_some(Place::Text { name, said, escape })
    }
}

/// Whether a call that replaces a text names one, and another in its place.
fn changes(texts: &[(Vec<u8>, Vec<u8>)]) -> bool {
    let text = |name: &[u8]| texts.iter().find_map(|(known, said)| (known == name).then_some(said));
    match (text(b"old_str"), text(b"new_str")) {
        (Some(old), new) => !old.is_empty() && new != Some(old),
        (None, _) => true,
    }
}

#[cfg(test)]
mod tests;
