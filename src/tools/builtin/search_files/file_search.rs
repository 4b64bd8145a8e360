//! Searches one file after another and keeps the lines that are shown.

use std::{
    fs::File,
    io::{self, Read},
    time::Instant,
};

use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};

use super::lines::{Limits, Line, Lines};
use crate::core::Cancel;

/// The maximum length of a line that can be searched, in bytes. A file with a longer one is left there.
pub(super) const MAX_LINE: usize = 1 << 20;
/// The maximum number of bytes of a line that are shown.
const MAX_SHOWN: usize = 240;

/// Returns a searcher for any number of files, in memory that does not depend on their sizes. A binary file is left at its
/// first NUL byte.
pub(super) fn searcher(limits: Limits) -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_LINE))
        .before_context(limits.context)
        .after_context(limits.context)
        .build()
}

/// The content of a file.
pub(super) enum Input<'a> {
    /// All of it, because the file is small.
    Whole(&'a [u8]),
    /// It is read while it is searched.
    File(Interruptible<'a>),
}

/// Adds the lines of one file. Returns false if the time is over or `cancel` was given.
pub(super) fn search(
    searcher: &mut Searcher,
    pattern: &RegexMatcher,
    name: &str,
    input: Input<'_>,
    lines: &mut Lines,
) -> bool {
    let sink = LineSink { lines, name };
    let searched = match input {
        // A search in memory does not leave a binary file at its first NUL byte wherever that is.
        Input::Whole(text) if !text.contains(&0) => searcher.search_slice(pattern, text, sink),
        Input::Whole(text) => searcher.search_reader(pattern, text, sink),
        Input::File(file) => searcher.search_reader(pattern, file, sink),
    };
    // An error of the file ends the search in it: a line that is too long, or one that cannot be read.
    match searched {
        Err(error) => error.kind() != io::ErrorKind::TimedOut,
        Ok(()) => true,
    }
}

/// Takes the lines of one file.
struct LineSink<'a> {
    lines: &'a mut Lines,
    name: &'a str,
}

impl LineSink<'_> {
    fn shown(&self, number: Option<u64>, mark: char, line: &[u8]) -> String {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\n', '\r']);
        let end = line.floor_char_boundary(MAX_SHOWN);
        let cut = if end < line.len() { "…" } else { "" };
        format!("{}{mark}{}{mark} {}{cut}", self.name, number.unwrap_or(0), &line[..end])
    }
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.lines.has_room() {
            let line = self.shown(found.line_number(), ':', found.bytes());
            self.lines.add(Line::Match(line));
        } else {
            self.lines.count(1);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        let is_after = *around.kind() == SinkContextKind::After;
        if self.lines.takes_context(is_after) {
            let text = self.shown(around.line_number(), '-', around.bytes());
            self.lines.add(Line::Context { text, is_after });
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.lines.add(Line::Gap);
        Ok(true)
    }
}

/// A file whose reading ends early with an error.
pub(super) struct Interruptible<'a> {
    pub file: &'a File,
    pub cancel: &'a Cancel,
    pub end: Instant,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() || Instant::now() > self.end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}
