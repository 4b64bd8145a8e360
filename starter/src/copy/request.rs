//! Finds texts in a request: whole words, whole paths and addresses, and quoted texts.

use std::ops::Range;

use memchr::{memchr2, memmem, memrchr};

use super::{bounds, piped::Piped};
use crate::CopyKind;

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

/// Of a text that occurs more often than this it is assumed that it can be copied from a place of its own.
const MAX_OCCURRENCES: usize = 64;

/// The text of a request, from which arguments are copied.
pub(super) struct Request {
    text: Vec<u8>,
    piped: Option<Piped>,
}

impl Request {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.as_bytes().to_vec(), piped: Piped::new(text) }
    }

    /// Returns true if an answer that is not a call may begin with `text`, or be `text` if it is the `whole`.
    pub(super) fn may_answer(&self, text: &[u8], whole: bool) -> bool {
        self.piped.as_ref().is_none_or(|piped| piped.may_answer(text, whole))
    }

    /// Returns true if the request has a text of this kind that begins with `text`.
    pub(super) fn has_start(&self, kind: CopyKind, text: &[u8]) -> bool {
        match kind {
            CopyKind::OldText | CopyKind::NewText => self.begins(text),
            CopyKind::Content => self.begins(text) || self.is_line(text),
            CopyKind::Url if SCHEME.starts_with(text) => true,
            CopyKind::Url => {
                let rest = text.strip_prefix(SCHEME).unwrap_or(text);
                (self.begins_name(text) || self.begins_name(rest)) && self.is_picked(rest)
            }
            CopyKind::Path => {
                let begins = self.begins_name(text) || self.joined(text, |at, file| self.goes_on(at, file));
                begins && self.is_picked(text)
            }
            CopyKind::Pattern => self.has_directory(text),
            CopyKind::FirstLine | CopyKind::LastLine => true,
        }
    }

    /// Returns true if `text` is all of a text of this kind in the request.
    pub(super) fn has_whole(&self, kind: CopyKind, text: &[u8]) -> bool {
        match kind {
            CopyKind::OldText | CopyKind::NewText => self.holds(text),
            CopyKind::Content => (self.holds(text) || self.is_line(text)) && !self.cuts_data(text),
            CopyKind::Url => {
                let whole = |text: &[u8]| self.holds_name(text, |at| self.ends_address(at));
                let is_host =
                    |text: &[u8]| text.starts_with(b"localhost") || memchr2(b'.', b':', text).is_some();
                whole(text) || text.strip_prefix(SCHEME).is_some_and(|text| is_host(text) && whole(text))
            }
            CopyKind::Path => {
                let ends = |at: usize| self.ends_path(at);
                self.holds_name(text, ends)
                    || self.joined(text, |at, file| self.ends(at, file) && ends(at + file.len()))
            }
            CopyKind::Pattern | CopyKind::FirstLine | CopyKind::LastLine => true,
        }
    }

    /// Returns true if the last part of a path or an address is in the line that is asked for, or in the instruction.
    fn is_picked(&self, name: &[u8]) -> bool {
        let part = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.piped.as_ref().is_none_or(|piped| piped.may_name(part))
    }

    /// Returns true if this is a whole text of the request followed by the line break with which a file ends.
    fn is_line(&self, text: &[u8]) -> bool {
        text.strip_suffix(b"\n").is_some_and(|text| self.holds(text))
    }

    /// Returns true if this is the start of piped data but not all of it.
    fn cuts_data(&self, text: &[u8]) -> bool {
        self.piped.as_ref().is_some_and(|piped| piped.cuts(text.strip_suffix(b"\n").unwrap_or(text)))
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

    /// Returns true if the arguments of a call can be copied from different places of the request. A path that is put
    /// together from two places may overlap anything.
    pub(super) fn are_apart(&self, arguments: &[(CopyKind, Vec<u8>)]) -> bool {
        let spans = arguments.iter().filter_map(|(kind, text)| {
            let mut spans = self.spans(*kind, text);
            let some = spans.by_ref().take(MAX_OCCURRENCES).collect::<Vec<_>>();
            (!some.is_empty() && spans.next().is_none()).then_some(some)
        });
        are_apart(&spans.collect::<Vec<_>>(), &mut Vec::new())
    }

    /// Returns how much less likely an argument is than the model takes it to be, as a natural logarithm: a text without quotes
    /// probably does not end where the words of the request go on.
    pub(super) fn penalty(&self, kind: CopyKind, text: &[u8]) -> f32 {
        if kind == CopyKind::Path {
            return 0.0;
        }
        let penalty = |span: Range<usize>| match self.closing(span.start) {
            Some(_) => 0.0,
            None => bounds::penalty(&self.text, span, kind == CopyKind::Content),
        };
        let least = self.spans(kind, text).take(MAX_OCCURRENCES).map(penalty).min_by(f32::total_cmp);
        least.unwrap_or_default()
    }

    /// The places that an argument may have been copied from.
    fn spans<'a>(&'a self, kind: CopyKind, text: &'a [u8]) -> Box<dyn Iterator<Item = Range<usize>> + 'a> {
        let line = text.strip_suffix(b"\n").filter(|_| kind == CopyKind::Content && !self.holds(text));
        let text = line.unwrap_or(text);
        let span = |at: usize| at..at + text.len();
        match kind {
            _ if text.is_empty() => Box::new(std::iter::empty()),
            CopyKind::Path => {
                let whole = |&at: &usize| self.ends(at, text) && self.ends_path(at + text.len());
                Box::new(self.names(0, text).filter(whole).map(span))
            }
            CopyKind::OldText | CopyKind::NewText | CopyKind::Content => {
                Box::new(self.places(text).filter(|&at| self.ends(at, text)).map(span))
            }
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Returns true if a text of the request begins with `text`.
    fn begins(&self, text: &[u8]) -> bool {
        self.places(text).any(|at| self.goes_on(at, text))
    }

    /// Returns true if `text` is a whole text of the request.
    fn holds(&self, text: &[u8]) -> bool {
        text.is_empty() || self.places(text).any(|at| self.ends(at, text))
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

    /// Finds the places where `text` occurs and does not begin within a word.
    fn places(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        self.places_from(0, text)
    }

    fn places_from(&self, from: usize, text: &[u8]) -> impl Iterator<Item = usize> {
        let begins_word = text.first().is_some_and(u8::is_ascii_alphanumeric);
        let starts = (from..=self.text.len().saturating_sub(text.len()))
            .filter(move |&at| self.text[at..].starts_with(text));
        starts.filter(move |&at| !begins_word || at == 0 || !self.text[at - 1].is_ascii_alphanumeric())
    }

    /// Finds the places from `from` on where `text` occurs and does not begin within a path or an address.
    fn names(&self, from: usize, text: &[u8]) -> impl Iterator<Item = usize> {
        self.places_from(from, text).filter(|&at| {
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

/// Returns true if each text has a place that does not overlap those of the others or any of `taken`.
fn are_apart(texts: &[Vec<Range<usize>>], taken: &mut Vec<Range<usize>>) -> bool {
    let Some((places, others)) = texts.split_first() else { return true };
    places.iter().any(|place| {
        if taken.iter().any(|taken| place.start < taken.end && taken.start < place.end) {
            return false;
        }
        taken.push(place.clone());
        let fits = are_apart(others, taken);
        taken.pop();
        fits
    })
}
