//! Whether what a call says stands in the request.
//!
//! A small model that is shown nothing but the request copies names and texts out of it letter by letter, and slips
//! where they repeat themselves. Here it is held to the letters that are there, to whole words, whole paths and
//! addresses, to the numbers, and to the end of what stands in quotes; which of the possible ends it takes is its own choice.

use memchr::memmem;

use super::numbers::numbers;

/// A longer request is not searched; such a model is not shown all of it anyway.
const LONGEST: usize = 64 << 10;

/// Bytes at the end of a request in which a directory and a file are looked for: words come last, behind data.
const WORDS: usize = 1 << 10;

/// Put before an address that has none.
const SCHEME: &[u8] = b"https://";

/// Quotes that open, and what closes them.
const QUOTES: [(&[u8], &[u8]); 6] = [
    (b"\"", b"\""),
    (b"'", b"'"),
    (b"`", b"`"),
    ("“".as_bytes(), "”".as_bytes()),
    ("‘".as_bytes(), "’".as_bytes()),
    ("«".as_bytes(), "»".as_bytes()),
];

/// What somebody asked for.
pub struct Grounds {
    request: Vec<u8>,
    /// In digits, what a call may count with: numbers of the request, those that follow them, as where so many lines
    /// are left out, and zero and one, which mean all and the first. None where the request has no number.
    numbers: Vec<String>,
}

/// Where in the arguments, which are an object of texts and numbers.
#[derive(Clone, Debug, Default)]
pub enum At {
    #[default]
    Between,
    Name(Vec<u8>),
    /// Behind a name.
    Value(Vec<u8>),
    Number(Vec<u8>),
    Text {
        name: Vec<u8>,
        said: Vec<u8>,
        escape: Escape,
    },
}

#[derive(Clone, Debug, Default)]
pub enum Escape {
    #[default]
    None,
    Begun,
    /// Digits of `\uXXXX`.
    Unicode(String),
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
        Some(Self { request: request.as_bytes().to_vec(), numbers })
    }

    /// Where `byte` leads; `None` where no text of the request goes on like that.
    pub fn step(&self, at: At, byte: u8) -> Option<At> {
        Some(match (at, byte) {
            (At::Between, b'"') => At::Name(Vec::new()),
            (At::Between, _) => At::Between,
            (At::Name(name), b'"') => At::Value(name),
            (At::Name(mut name), _) => {
                name.push(byte);
                At::Name(name)
            }
            (At::Value(name), b'"') => At::Text { name, said: Vec::new(), escape: Escape::None },
            (At::Value(_), b'0'..=b'9') => return self.number(Vec::new(), byte),
            (At::Value(_), b',' | b'}') => At::Between,
            (At::Value(name), _) => At::Value(name),
            (At::Number(digits), _) => return self.number(digits, byte),
            (At::Text { name, said, escape }, byte) => return self.text(name, said, escape, byte),
        })
    }

    fn number(&self, mut digits: Vec<u8>, byte: u8) -> Option<At> {
        let known = |fits: fn(&[u8], &[u8]) -> bool, digits: &[u8]| {
            self.numbers.is_empty() || self.numbers.iter().any(|number| fits(number.as_bytes(), digits))
        };
        if byte.is_ascii_digit() {
            digits.push(byte);
            return known(<[u8]>::starts_with, &digits).then_some(At::Number(digits));
        }
        known(|number, digits| number == digits, &digits).then_some(At::Between)
    }

    fn text(&self, name: Vec<u8>, mut said: Vec<u8>, escape: Escape, byte: u8) -> Option<At> {
        let escape = match escape {
            Escape::None if byte == b'"' => return self.has_whole(&name, &said).then_some(At::Between),
            Escape::None if byte == b'\\' => {
                // Once it is there, something has to follow.
                let follows = b"\"\\\n\t\r\x08\x0c".iter().any(|&next| {
                    let said = [&said[..], &[next]].concat();
                    self.has(&name, &said)
                });
                return follows.then_some(At::Text { name, said, escape: Escape::Begun });
            }
            Escape::None => {
                said.push(byte);
                Escape::None
            }
            Escape::Begun if byte == b'u' => {
                return Some(At::Text { name, said, escape: Escape::Unicode(String::new()) });
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
                    return Some(At::Text { name, said, escape: Escape::Unicode(digits) });
                }
                // Half of a pair is no character; the request has the whole one, which needs no escape.
                let character = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?;
                said.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                Escape::None
            }
        };
        self.has(&name, &said).then_some(At::Text { name, said, escape })
    }

    /// Whether the request has what an argument says so far.
    fn has(&self, name: &[u8], said: &[u8]) -> bool {
        match name {
            b"old_str" | b"new_str" => self.begins(said),
            b"content" => self.begins(said) || self.ends_line(said),
            b"url" => {
                let rest = said.strip_prefix(SCHEME);
                self.begins_name(said)
                    || SCHEME.starts_with(said)
                    || rest.is_some_and(|rest| self.begins_name(rest))
            }
            b"path" => self.begins_name(said) || self.joined(said, |at, file| self.goes_on(at, file)),
            // A pattern is put together.
            _ => true,
        }
    }

    /// Whether the argument may end with what it says.
    fn has_whole(&self, name: &[u8], said: &[u8]) -> bool {
        match name {
            b"old_str" | b"new_str" => self.holds(said),
            b"content" => self.holds(said) || self.ends_line(said),
            b"url" => {
                let whole = |text: &[u8]| self.holds_name(text, |at| self.ends_address(at));
                whole(said) || said.strip_prefix(SCHEME).is_some_and(whole)
            }
            b"path" => {
                let ends = |at: usize| self.ends_path(at);
                self.holds_name(said, ends)
                    || self.joined(said, |at, file| self.ends(at, file) && ends(at + file.len()))
            }
            _ => true,
        }
    }

    /// Whether this is a whole text of the request and a line break, with which a file ends.
    fn ends_line(&self, said: &[u8]) -> bool {
        said.strip_suffix(b"\n").is_some_and(|said| self.holds(said))
    }

    /// Whether a text of the request begins like this.
    fn begins(&self, text: &[u8]) -> bool {
        self.places(text).any(|at| self.goes_on(at, text))
    }

    /// Whether this is a whole text of the request.
    fn holds(&self, text: &[u8]) -> bool {
        text.is_empty() || self.places(text).any(|at| self.ends(at, text))
    }

    /// Whether a path or an address of the request begins like this.
    fn begins_name(&self, text: &[u8]) -> bool {
        self.names(0, text).any(|at| self.goes_on(at, text))
    }

    /// Whether this is a whole path or address of the request: `ends` says where one may end.
    fn holds_name(&self, text: &[u8], ends: impl Fn(usize) -> bool) -> bool {
        self.names(0, text).any(|at| self.ends(at, text) && ends(at + text.len()))
    }

    /// Whether what begins at `at` may go on behind `text`: it has not passed the quote that closes it.
    fn goes_on(&self, at: usize, text: &[u8]) -> bool {
        let behind = &self.request[at + text.len()..];
        self.closing(at).is_none_or(|quote| memmem::find(behind, quote).is_some())
    }

    /// Whether what begins at `at` may end with `text`: it cuts no word, and ends before a quote if one opened it.
    fn ends(&self, at: usize, text: &[u8]) -> bool {
        let behind = &self.request[at + text.len()..];
        let cuts = text.last().is_some_and(u8::is_ascii_alphanumeric)
            && behind.first().is_some_and(u8::is_ascii_alphanumeric);
        !cuts && self.closing(at).is_none_or(|quote| behind.starts_with(quote))
    }

    /// Where `text` stands and is not the rest of a word.
    fn places(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        self.places_from(0, text)
    }

    fn places_from(&self, from: usize, text: &[u8]) -> impl Iterator<Item = usize> {
        let begins_word = text.first().is_some_and(u8::is_ascii_alphanumeric);
        let starts = (from..=self.request.len().saturating_sub(text.len()))
            .filter(move |&at| self.request[at..].starts_with(text));
        starts.filter(move |&at| !begins_word || at == 0 || !self.request[at - 1].is_ascii_alphanumeric())
    }

    /// Where `text` stands and is not the rest of a longer path or address, from `from` on.
    fn names(&self, from: usize, text: &[u8]) -> impl Iterator<Item = usize> {
        self.places_from(from, text).filter(|&at| {
            let (before, last) = match self.request[..at] {
                [ref before @ .., last] => (before.last(), last),
                [] => return true,
            };
            match last {
                b'/' => self.request[..at].ends_with(b"://"),
                b'\\' | b'.' | b'_' | b'~' => false,
                // As in `a-b`, but not a dash before a name.
                b'-' => !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)),
                last => !last.is_ascii_alphanumeric(),
            }
        })
    }

    /// The quote that ends what begins here, if a quote opens right before it and is closed.
    fn closing(&self, at: usize) -> Option<&'static [u8]> {
        let (before, behind) = self.request.split_at(at);
        let (open, close) = QUOTES.into_iter().find(|(open, _)| before.ends_with(open))?;
        // As in "it's".
        let apostrophe = before[..at - open.len()].last().is_some_and(u8::is_ascii_alphanumeric);
        (!apostrophe && memmem::find(behind, close).is_some()).then_some(close)
    }

    /// Whether this is a directory in one place and the file in another, where it is `found`. Neither is part of a
    /// longer path there.
    fn joined(&self, path: &[u8], found: impl Fn(usize, &[u8]) -> bool) -> bool {
        let words = self.request.len().saturating_sub(WORDS);
        let slashes = (1..path.len()).filter(|&at| path[at] == b'/');
        slashes.map(|at| (&path[..at], &path[at + 1..])).any(|(directory, file)| {
            self.names(words, directory).filter(|at| self.ends_path(at + directory.len())).any(|at| {
                self.names(words, file).any(|place| {
                    let apart = place + file.len() <= at || place >= at + directory.len();
                    apart && found(place, file)
                })
            })
        })
    }

    /// Whether no address goes on here.
    fn ends_address(&self, at: usize) -> bool {
        let inner = self.request.get(at).is_some_and(|byte| b":?&=#%+@~".contains(byte));
        !(inner && self.request.get(at + 1).is_some_and(u8::is_ascii_alphanumeric)) && self.ends_path(at)
    }

    /// Whether no path goes on here, but for a slash.
    fn ends_path(&self, at: usize) -> bool {
        let behind = &self.request[at..];
        let behind = behind.strip_prefix(b"/").unwrap_or(behind);
        let behind = behind.strip_prefix(b".").or(behind.strip_prefix(b"-")).unwrap_or(behind);
        !behind.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_'))
    }
}

#[cfg(test)]
mod tests {
    use super::{At, Grounds};

    /// How much of `arguments` may be said.
    fn said<'a>(request: &str, arguments: &'a str) -> &'a str {
        let grounds = Grounds::new(request).unwrap();
        let mut at = At::default();
        for (number, &byte) in arguments.as_bytes().iter().enumerate() {
            match grounds.step(at, byte) {
                Some(next) => at = next,
                None => return &arguments[..number],
            }
        }
        arguments
    }

    #[test]
    fn what_stands_in_the_request_may_be_said() {
        for (request, arguments) in [
            ("read a/b.txt", r#"{"path": "a/b.txt", "start_line": 3}"#),
            ("read b.txt in the directory a/c", r#"{"path": "a/c/b.txt"}"#),
            ("in a/c/, read b.txt", r#"{"path": "a/c/b.txt"}"#),
            ("read \"b.txt\" in 'a/c'.", r#"{"path": "a/c/b.txt"}"#),
            ("write \"x\ty\" to c", r#"{"path": "c", "content": "x\ty\n"}"#),
            ("write 'say \"ä\"\\' to c", r#"{"path": "c", "content": "say \"ä\"\\\n"}"#),
            ("a\u{1b}b to c", r#"{"path": "c", "content": "a\u001bb"}"#),
            ("a to b in c", r#"{"path": "c", "old_str": "a", "new_str": "b", "occurrence": 0}"#),
            ("get example.com/a", r#"{"url": "https://example.com/a"}"#),
            ("get 'example.com'.", r#"{"url": "https://example.com"}"#),
            ("what does http://a.b/c?d=e say?", r#"{"url": "http://a.b/c?d=e"}"#),
            ("get http://a.de", r#"{"url": "https://a.de"}"#),
            ("is a.de/b up? go to a.de:80/c!", r#"{"url": "https://a.de:80/c"}"#),
            ("read a-b.txt:12", r#"{"path": "a-b.txt"}"#),
            ("- a.txt, -b.txt, (c.txt) read them", r#"{"path": "a.txt"}"#),
            ("- a.txt, -b.txt, (c.txt) read them", r#"{"path": "b.txt"}"#),
            ("- a.txt, -b.txt, (c.txt) read them", r#"{"path": "c.txt"}"#),
            ("lines 3 to twelve of a", r#"{"path": "a", "start_line": 3, "end_line": 12}"#),
            ("a but for its first ten lines", r#"{"path": "a", "start_line": 11}"#),
            ("a, the beginning", r#"{"path": "a", "start_line": 1, "end_line": 20}"#),
            ("the fifth a to b in c", r#"{"path": "c", "occurrence": 5}"#),
            ("cat <a.txt", r#"{"path": "a.txt"}"#),
            ("path=a/b.txt...", r#"{"path": "a/b.txt"}"#),
            ("list a/ and read b", r#"{"path": "a/b"}"#),
            ("all rust files", r#"{"pattern": "**/*.rs"}"#),
            ("write it's \"so\" to c", r#"{"path": "c", "content": "it's \"so\"\n"}"#),
            ("write 'it's' to c", r#"{"path": "c", "content": "it's\n"}"#),
            ("write s over to c, it's", r#"{"path": "c", "content": "s over\n"}"#),
            ("write “a 'b' c” to d", r#"{"path": "d", "content": "a 'b' c\n"}"#),
            ("write \"a to c", r#"{"path": "c", "content": "a\n"}"#),
            ("empty c", r#"{"path": "c", "content": ""}"#),
            ("s/a/b/ in c", r#"{"path": "c", "old_str": "a", "new_str": "b"}"#),
        ] {
            assert_eq!(said(request, arguments), arguments, "{request}");
        }
    }

    #[test]
    fn nothing_else_may() {
        for (request, arguments, allowed) in [
            ("read a.txt", r#"{"path": "a.md"}"#, r#"{"path": "a."#),
            ("read x/.y/.z", r#"{"path": "x/.y/.y/.z"}"#, r#"{"path": "x/.y/."#),
            ("write one two to c", r#"{"content": "one too"}"#, r#"{"content": "one t"#),
            ("write one to c", r#"{"content": "one\nto"}"#, r#"{"content": "one\n"#),
            ("a to b in c", r#"{"old_str": "a\"}"#, r#"{"old_str": "a"#),
            ("a to b in c", r#"{"new_str": "\u0041"}"#, r#"{"new_str": ""#),
            ("lines 3 to 12 of a", r#"{"start_line": 2}"#, r#"{"start_line": "#),
            ("lines 3 to 12 of a", r#"{"end_line": 14}"#, r#"{"end_line": 1"#),
            ("lines 30 to 12 of a", r#"{"start_line": 3, "#, r#"{"start_line": 3"#),
            ("get example.com", r#"{"url": "http://example.com"}"#, r#"{"url": "http"#),
        ] {
            assert_eq!(said(request, arguments), allowed, "{request}");
        }
    }

    #[test]
    fn no_text_is_cut() {
        for (request, arguments, allowed) in [
            ("read notes.txt", r#"{"path": "notes.tx"}"#, r#"{"path": "notes.tx"#),
            ("read notes.txt", r#"{"path": "otes.txt"}"#, r#"{"path": ""#),
            ("read b.txt in a/c", r#"{"path": "a/c/b.tx"}"#, r#"{"path": "a/c/b.tx"#),
            ("read b.txt in a/c", r#"{"path": "a/c/txt"}"#, r#"{"path": "a/c/"#),
            ("read a-b/a-b.txt", r#"{"path": "b/a-b.txt"}"#, r#"{"path": ""#),
            ("read a-b/a-b.txt", r#"{"path": "a-b.txt"}"#, r#"{"path": "a-b"#),
            ("read a-b/a-b.txt", r#"{"path": "a-b"}"#, r#"{"path": "a-b"#),
            ("read /a/b", r#"{"path": "a/b"}"#, r#"{"path": ""#),
            ("read .b", r#"{"path": "b"}"#, r#"{"path": ""#),
            ("read a/b/b", r#"{"path": "a/b"}"#, r#"{"path": "a/b"#),
            ("get https://a.de/b/b", r#"{"url": "https://a.de/b"}"#, r#"{"url": "https://a.de/b"#),
            ("get http://a.de/?b=c", r#"{"url": "http://a.de/?b"}"#, r#"{"url": "http://a.de/?b"#),
            ("read a/a.txt", r#"{"path": "a/a/a.txt"}"#, r#"{"path": "a/a"#),
            ("read c in a.b/d", r#"{"path": "a/c"}"#, r#"{"path": "a"#),
            ("get example.com", r#"{"url": "https://example.c"}"#, r#"{"url": "https://example.c"#),
            ("write \"one two\" to c", r#"{"content": "one\n"}"#, r#"{"content": "one"#),
            ("write \"one two\" to c", r#"{"content": "one two\" to c"}"#, r#"{"content": "one two\"#),
            ("write ‘one two’ to c", r#"{"content": "one"}"#, r#"{"content": "one"#),
        ] {
            assert_eq!(said(request, arguments), allowed, "{request}");
        }
    }

    #[test]
    fn a_long_request_is_not_searched() {
        assert!(Grounds::new(&"x".repeat(65 << 10)).is_none());
    }
}
