//! Finds texts in a request: whole words, whole paths and addresses, and quoted texts.

use std::{cmp::Ordering, ops::Range};

use memchr::{memchr2, memmem, memrchr};

use crate::{
    plan::{Picked, Piped, whole_names},
    tools::Copied,
};

/// A directory and a file that make up a path are looked for in this many bytes at the end of a request: the
/// instruction comes last, after the data.
const INSTRUCTION_BYTES: usize = 1 << 10;

/// Is put before an address without a scheme.
const SCHEME: &[u8] = b"https://";

/// Opening quotes and the quotes that close them.
const QUOTES: [(&[u8], &[u8]); 6] = [
    (b"\"", b"\""),
    (b"'", b"'"),
    (b"`", b"`"),
    ("“".as_bytes(), "”".as_bytes()),
    ("‘".as_bytes(), "’".as_bytes()),
    ("«".as_bytes(), "»".as_bytes()),
];

/// The text of a request, from which arguments are copied.
pub(super) struct Request {
    text: Vec<u8>,
    /// Names with spaces and names in quotes.
    names: Vec<Range<usize>>,
    /// The texts that a path or an address may be part of, if not all of the request.
    sources: Option<Vec<Vec<u8>>>,
}

impl Request {
    pub(super) fn new(text: &str) -> Self {
        let sources = Piped::new(text).map(|piped| match piped.picked() {
            Picked::Line(line) => vec![line.as_bytes().to_vec(), piped.instruction.as_bytes().to_vec()],
            Picked::Unknown => vec![piped.instruction.as_bytes().to_vec()],
        });
        Self { text: text.as_bytes().to_vec(), names: whole_names(text), sources }
    }

    /// Returns true if the request has a text of this kind that begins with `text`.
    pub(super) fn has_start(&self, kind: Copied, text: &[u8]) -> bool {
        match kind {
            Copied::Url if SCHEME.starts_with(text) => true,
            Copied::Url => {
                let rest = text.strip_prefix(SCHEME).unwrap_or(text);
                (self.begins_name(text) || self.begins_name(rest)) && self.is_picked(rest)
            }
            Copied::Path => {
                let begins = self.begins_name(text) || self.joined(text, |at, file| self.goes_on(at, file));
                begins && self.is_picked(text)
            }
            Copied::Pattern => self.has_directory(text),
            Copied::FirstLine | Copied::LastLine => true,
        }
    }

    /// Returns true if `text` is all of a text of this kind in the request.
    pub(super) fn has_whole(&self, kind: Copied, text: &[u8]) -> bool {
        match kind {
            Copied::Url => {
                let whole = |name: &[u8]| {
                    self.holds_name(name, |at| self.ends_address(at) && self.closes_brackets(at, name))
                };
                let is_host =
                    |text: &[u8]| text.starts_with(b"localhost") || memchr2(b'.', b':', text).is_some();
                whole(text) || text.strip_prefix(SCHEME).is_some_and(|text| is_host(text) && whole(text))
            }
            Copied::Path => {
                let ends = |at: usize| self.ends_path(at) && !self.is_within_name(at);
                self.holds_name(text, ends)
                    || self.joined(text, |at, file| self.ends(at, file) && ends(at + file.len()))
            }
            Copied::Pattern | Copied::FirstLine | Copied::LastLine => true,
        }
    }

    /// Returns true if the last part of a path or an address is in the line that is asked for, or in the instruction.
    fn is_picked(&self, name: &[u8]) -> bool {
        let part = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let has = |source: &Vec<u8>| memmem::find(source, part).is_some();
        self.sources.as_ref().is_none_or(|sources| sources.iter().any(has))
    }

    /// Returns true if this is between the start and the end of a name with spaces.
    fn is_within_name(&self, at: usize) -> bool {
        self.names.iter().any(|name| name.start < at && at < name.end)
    }

    /// Returns true if `address`, which ends at `at`, has both brackets of each pair or could not have them.
    fn closes_brackets(&self, at: usize, address: &[u8]) -> bool {
        let count = |bracket: u8| address.iter().filter(|byte| **byte == bracket).count();
        match count(b'(').cmp(&count(b')')) {
            Ordering::Greater => self.text.get(at) != Some(&b')'),
            Ordering::Equal => true,
            Ordering::Less => !address.ends_with(b")"),
        }
    }

    /// Returns true if the directory of a pattern is in the request, or above one that is. The rest of the pattern may be
    /// anything.
    fn has_directory(&self, pattern: &[u8]) -> bool {
        let Some(slash) = memrchr(b'/', pattern) else { return true };
        let named = pattern[..slash].iter().rposition(|byte| !b"*/".contains(byte));
        let directory = &pattern[..named.map_or(0, |last| last + 1)];
        let ends = |at: usize| self.text[at..].starts_with(b"/") || self.ends_path(at);
        directory.is_empty() || self.names(0, directory).any(|at| ends(at + directory.len()))
    }

    /// Returns true if a path or an address of the request begins with `text`.
    fn begins_name(&self, text: &[u8]) -> bool {
        self.names(0, text).any(|at| self.goes_on(at, text))
    }

    /// Returns true if `text` is a whole path or address of the request. `ends` says where one may end.
    fn holds_name(&self, text: &[u8], ends: impl Fn(usize) -> bool) -> bool {
        self.names(0, text).any(|at| self.ends(at, text) && ends(at + text.len()))
    }

    /// Returns true if a text that begins at `at` may go on after `text`: it has not passed its closing quote.
    fn goes_on(&self, at: usize, text: &[u8]) -> bool {
        let after = &self.text[at + text.len()..];
        self.closing(at).is_none_or(|quote| memmem::find(after, quote).is_some())
    }

    /// Returns true if a text that begins at `at` may end after `text`: it cuts no word, and ends before the closing
    /// quote if a quote opened it.
    fn ends(&self, at: usize, text: &[u8]) -> bool {
        let after = &self.text[at + text.len()..];
        let cuts = text.last().is_some_and(u8::is_ascii_alphanumeric)
            && after.first().is_some_and(u8::is_ascii_alphanumeric);
        !cuts && self.closing(at).is_none_or(|quote| after.starts_with(quote))
    }

    /// Finds the places from `from` on where `text` occurs and does not begin within a word.
    fn places(&self, from: usize, text: &[u8]) -> impl Iterator<Item = usize> {
        let begins_word = text.first().is_some_and(u8::is_ascii_alphanumeric);
        let starts = (from..=self.text.len().saturating_sub(text.len()))
            .filter(move |&at| self.text[at..].starts_with(text));
        starts.filter(move |&at| !begins_word || at == 0 || !self.text[at - 1].is_ascii_alphanumeric())
    }

    /// Finds the places from `from` on where `text` occurs and does not begin within a path or an address.
    fn names(&self, from: usize, text: &[u8]) -> impl Iterator<Item = usize> {
        self.places(from, text).filter(|&at| !self.is_within_name(at)).filter(|&at| {
            let (before, last) = match self.text[..at] {
                [ref before @ .., last] => (before.last(), last),
                [] => return true,
            };
            match last {
                b'/' => self.text[..at].ends_with(b"://"),
                b'\\' | b'.' | b'_' | b'~' => false,
                // As in `a-b`, but not a dash before a name.
                b'-' => !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)),
                last => !last.is_ascii_alphanumeric(),
            }
        })
    }

    /// The quote that closes a text that begins at `at`, if a quote opens right before it and is closed.
    fn closing(&self, at: usize) -> Option<&'static [u8]> {
        let (before, after) = self.text.split_at(at);
        let (open, close) = QUOTES.into_iter().find(|(open, _)| before.ends_with(open))?;
        // As in "it's".
        let apostrophe = before[..at - open.len()].last().is_some_and(u8::is_ascii_alphanumeric);
        (!apostrophe && memmem::find(after, close).is_some()).then_some(close)
    }

    /// Returns true if `path` is a directory in one place of the request and a file in another, for which `found` is
    /// true. Neither may be part of a longer path there.
    fn joined(&self, path: &[u8], found: impl Fn(usize, &[u8]) -> bool) -> bool {
        let words = self.text.len().saturating_sub(INSTRUCTION_BYTES);
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

    /// Returns true if no address goes on here.
    fn ends_address(&self, at: usize) -> bool {
        let inner = self.text.get(at).is_some_and(|byte| b":?&=#%+@~".contains(byte));
        !(inner && self.text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric)) && self.ends_path(at)
    }

    /// Returns true if no path goes on here, except for a slash.
    fn ends_path(&self, at: usize) -> bool {
        let after = &self.text[at..];
        let after = after.strip_prefix(b"/").unwrap_or(after);
        let after = after.strip_prefix(b".").or(after.strip_prefix(b"-")).unwrap_or(after);
        !after.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_'))
    }
}
