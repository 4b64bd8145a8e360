//! Whether what a call says stands in the request.
//!
//! A small model that is shown nothing but the request copies names and texts out of it letter by letter, and slips
//! where they repeat themselves. Here it is held to the letters that are there; where a text ends is its own choice.

use memchr::memmem;

/// A longer request is not searched; such a model is not shown all of it anyway.
const LONGEST: usize = 64 << 10;

/// What somebody asked for.
pub struct Grounds(Vec<u8>);

/// Where in the arguments, which are an object of texts and numbers.
#[derive(Clone, Debug, Default)]
pub enum At {
    #[default]
    Between,
    Name(Vec<u8>),
    /// Behind a name.
    Value(Vec<u8>),
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
        (request.len() <= LONGEST).then(|| Self(request.as_bytes().to_vec()))
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
            (At::Value(_), b',' | b'}') => At::Between,
            (At::Value(name), _) => At::Value(name),
            (At::Text { name, said, escape }, byte) => return self.text(name, said, escape, byte),
        })
    }

    fn text(&self, name: Vec<u8>, mut said: Vec<u8>, escape: Escape, byte: u8) -> Option<At> {
        let escape = match escape {
            Escape::None if byte == b'"' => return Some(At::Between),
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
            b"old_str" | b"new_str" => self.holds(said),
            // A file ends with a line break.
            b"content" => self.holds(said) || said.strip_suffix(b"\n").is_some_and(|said| self.holds(said)),
            b"url" => {
                let rest = said.strip_prefix(b"https://".as_slice());
                self.holds(said) || b"https://".starts_with(said) || rest.is_some_and(|rest| self.holds(rest))
            }
            b"path" => self.holds(said) || self.holds_apart(said),
            // A pattern is put together.
            _ => true,
        }
    }

    fn holds(&self, text: &[u8]) -> bool {
        memmem::find(&self.0, text).is_some()
    }

    /// A directory in one place and the file in another.
    fn holds_apart(&self, path: &[u8]) -> bool {
        let slashes = (1..path.len()).filter(|&at| path[at] == b'/');
        slashes.map(|at| (&path[..at], &path[at + 1..])).any(|(directory, file)| {
            memmem::find_iter(&self.0, directory).any(|at| {
                let (before, behind) = (&self.0[..at], &self.0[at + directory.len()..]);
                memmem::find(before, file).is_some() || memmem::find(behind, file).is_some()
            })
        })
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
            ("write \"x\ty\" to c", r#"{"path": "c", "content": "x\ty\n"}"#),
            ("write 'say \"ä\"\\' to c", r#"{"path": "c", "content": "say \"ä\"\\\n"}"#),
            ("a\u{1b}b to c", r#"{"path": "c", "content": "a\u001bb"}"#),
            ("a to b in c", r#"{"path": "c", "old_str": "a", "new_str": "b", "occurrence": 0}"#),
            ("get example.com/a", r#"{"url": "https://example.com/a"}"#),
            ("all rust files", r#"{"pattern": "**/*.rs"}"#),
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
            ("get example.com", r#"{"url": "http://example.com"}"#, r#"{"url": "http"#),
        ] {
            assert_eq!(said(request, arguments), allowed, "{request}");
        }
    }

    #[test]
    fn a_long_request_is_not_searched() {
        assert!(Grounds::new(&"x".repeat(65 << 10)).is_none());
    }
}
