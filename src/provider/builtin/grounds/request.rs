//! Where the texts of a request are: whole words, whole paths and addresses, and what stands in quotes.

use memchr::{memchr2, memmem, memrchr};

use super::{bounds, piped::Piped};

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

/// A text that stands more often than this is taken to stand apart from any other.
const OFTEN: usize = 64;

/// The text of a request, to be copied from.
pub struct Request {
    text: Vec<u8>,
    piped: Option<Piped>,
}

impl Request {
    pub fn new(text: &str) -> Self {
        Self { text: text.as_bytes().to_vec(), piped: Piped::new(text) }
    }

    /// Whether an answer may begin like this, or be this if it is the `whole`.
    pub fn may_say(&self, said: &[u8], whole: bool) -> bool {
        self.piped.as_ref().is_none_or(|piped| piped.may_say(said, whole))
    }

    /// Whether the request has what an argument says so far.
    pub fn has(&self, name: &[u8], said: &[u8]) -> bool {
        match name {
            b"old_str" | b"new_str" => self.begins(said),
            b"content" => self.begins(said) || self.ends_line(said),
            b"url" if SCHEME.starts_with(said) => true,
            b"url" => {
                let rest = said.strip_prefix(SCHEME).unwrap_or(said);
                (self.begins_name(said) || self.begins_name(rest)) && self.is_picked(rest)
            }
            b"path" => {
                let begins = self.begins_name(said) || self.joined(said, |at, file| self.goes_on(at, file));
                begins && self.is_picked(said)
            }
            b"pattern" => self.has_directory(said),
            _ => true,
        }
    }

    /// Whether the argument may end with what it says.
    pub fn has_whole(&self, name: &[u8], said: &[u8]) -> bool {
        match name {
            b"old_str" | b"new_str" => self.holds(said),
            b"content" => (self.holds(said) || self.ends_line(said)) && !self.cuts_data(said),
            b"url" => {
                let whole = |text: &[u8]| self.holds_name(text, |at| self.ends_address(at));
                let is_host =
                    |text: &[u8]| text.starts_with(b"localhost") || memchr2(b'.', b':', text).is_some();
                whole(said) || said.strip_prefix(SCHEME).is_some_and(|text| is_host(text) && whole(text))
            }
            b"path" => {
                let ends = |at: usize| self.ends_path(at);
                self.holds_name(said, ends)
                    || self.joined(said, |at, file| self.ends(at, file) && ends(at + file.len()))
            }
            _ => true,
        }
    }

    /// Whether the last part of a path or an address is of the line that is asked for, or of the instruction.
    fn is_picked(&self, said: &[u8]) -> bool {
        let part = said.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.piped.as_ref().is_none_or(|piped| piped.may_name(part))
    }

    /// Whether this is a whole text of the request and a line break, with which a file ends.
    fn ends_line(&self, said: &[u8]) -> bool {
        said.strip_suffix(b"\n").is_some_and(|said| self.holds(said))
    }

    /// Whether this is the start of piped data and not all of it.
    fn cuts_data(&self, said: &[u8]) -> bool {
        self.piped.as_ref().is_some_and(|piped| piped.cuts(said.strip_suffix(b"\n").unwrap_or(said)))
    }

    /// Whether the directory of a pattern is one of the request, or above one; what is behind it is put together.
    fn has_directory(&self, pattern: &[u8]) -> bool {
        let Some(slash) = memrchr(b'/', pattern) else { return true };
        let named = pattern[..slash].iter().rposition(|byte| !b"*/".contains(byte));
        let directory = &pattern[..named.map_or(0, |last| last + 1)];
        let ends = |at: usize| self.text[at..].starts_with(b"/") || self.ends_path(at);
        directory.is_empty() || self.names(0, directory).any(|at| ends(at + directory.len()))
    }

    /// Whether texts of a call can stand in different places of the request. A path that is put together from two
    /// may stand anywhere.
    pub fn apart(&self, texts: &[(Vec<u8>, Vec<u8>)]) -> bool {
        let spans = texts.iter().filter_map(|(name, said)| {
            let mut spans = self.spans(name, said);
            let some = spans.by_ref().take(OFTEN).collect::<Vec<_>>();
            (!some.is_empty() && spans.next().is_none()).then_some(some)
        });
        is_apart(&spans.collect::<Vec<_>>(), &mut Vec::new())
    }

    /// How much less likely than a model takes it to be an argument is, as a natural logarithm: a text without quotes
    /// is likely to end where the words of the request go on.
    pub fn doubt(&self, name: &[u8], said: &[u8]) -> f32 {
        if name == b"path" {
            return 0.0;
        }
        let doubt = |span: (usize, usize)| match self.closing(span.0) {
            Some(_) => 0.0,
            None => bounds::doubt(&self.text, span, name == b"content"),
        };
        let least = self.spans(name, said).take(OFTEN).map(doubt).min_by(f32::total_cmp);
        least.unwrap_or_default()
    }

    /// Where an argument may have been copied from: its start and its end.
    fn spans<'a>(&'a self, name: &[u8], said: &'a [u8]) -> Box<dyn Iterator<Item = (usize, usize)> + 'a> {
        let line = said.strip_suffix(b"\n").filter(|_| name == b"content" && !self.holds(said));
        let said = line.unwrap_or(said);
        let span = |at: usize| (at, at + said.len());
        match name {
            _ if said.is_empty() => Box::new(std::iter::empty()),
            b"path" => {
                let whole = |&at: &usize| self.ends(at, said) && self.ends_path(at + said.len());
                Box::new(self.names(0, said).filter(whole).map(span))
            }
            b"old_str" | b"new_str" | b"content" => {
                Box::new(self.places(said).filter(|&at| self.ends(at, said)).map(span))
            }
            _ => Box::new(std::iter::empty()),
        }
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
        let behind = &self.text[at + text.len()..];
        self.closing(at).is_none_or(|quote| memmem::find(behind, quote).is_some())
    }

    /// Whether what begins at `at` may end with `text`: it cuts no word, and ends before a quote if one opened it.
    fn ends(&self, at: usize, text: &[u8]) -> bool {
        let behind = &self.text[at + text.len()..];
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
        let starts = (from..=self.text.len().saturating_sub(text.len()))
            .filter(move |&at| self.text[at..].starts_with(text));
        starts.filter(move |&at| !begins_word || at == 0 || !self.text[at - 1].is_ascii_alphanumeric())
    }

    /// Where `text` stands and is not the rest of a longer path or address, from `from` on.
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

    /// The quote that ends what begins here, if a quote opens right before it and is closed.
    fn closing(&self, at: usize) -> Option<&'static [u8]> {
        let (before, behind) = self.text.split_at(at);
        let (open, close) = QUOTES.into_iter().find(|(open, _)| before.ends_with(open))?;
        // As in "it's".
        let apostrophe = before[..at - open.len()].last().is_some_and(u8::is_ascii_alphanumeric);
        (!apostrophe && memmem::find(behind, close).is_some()).then_some(close)
    }

    /// Whether this is a directory in one place and the file in another, where it is `found`. Neither is part of a
    /// longer path there.
    fn joined(&self, path: &[u8], found: impl Fn(usize, &[u8]) -> bool) -> bool {
        let words = self.text.len().saturating_sub(WORDS);
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
        let inner = self.text.get(at).is_some_and(|byte| b":?&=#%+@~".contains(byte));
        !(inner && self.text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric)) && self.ends_path(at)
    }

    /// Whether no path goes on here, but for a slash.
    fn ends_path(&self, at: usize) -> bool {
        let behind = &self.text[at..];
        let behind = behind.strip_prefix(b"/").unwrap_or(behind);
        let behind = behind.strip_prefix(b".").or(behind.strip_prefix(b"-")).unwrap_or(behind);
        !behind.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_'))
    }
}

/// Whether each text has a place that none of the others and none of `taken` reaches into.
fn is_apart(texts: &[Vec<(usize, usize)>], taken: &mut Vec<(usize, usize)>) -> bool {
    let Some((places, others)) = texts.split_first() else { return true };
    places.iter().any(|&(start, end)| {
        if taken.iter().any(|&(from, to)| start < to && from < end) {
            return false;
        }
        taken.push((start, end));
        let fits = is_apart(others, taken);
        taken.pop();
        fits
    })
}
