//! Searches files one after another and keeps the lines that are shown.

use std::{
    fs::File,
    io::{self, Read},
    time::{Duration, Instant},
};

use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};

use crate::{core::Cancel, tools::builtin::MAX_OUTPUT};

/// The maximum time of one search.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The maximum length of a line that can be searched, in bytes. A file with a longer one is left there.
pub(super) const MAX_LINE: usize = 1 << 20;
/// The maximum number of bytes of a line that are shown.
const MAX_SHOWN: usize = 240;

/// The number of matching lines that are shown, and of lines around each of them.
#[derive(Clone, Copy, Default)]
pub(super) struct Limits {
    pub lines: usize,
    pub context: usize,
}

/// A search in progress.
pub(super) struct FileSearch {
    limits: Limits,
    started: Instant,
    text: String,
    matching: usize,
    shown: usize,
    /// The reason why not everything was searched.
    stopped: Option<&'static str>,
}

impl Default for FileSearch {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl FileSearch {
    pub(super) fn new(limits: Limits) -> Self {
        let (text, started) = (String::new(), Instant::now());
        Self { limits, started, text, matching: 0, shown: 0, stopped: None }
    }

    /// Returns the number of matching lines in all files so far.
    pub(super) fn matching_lines(&self) -> usize {
        self.matching
    }

    /// Returns the number of matching lines that are in the text.
    pub(super) fn shown_lines(&self) -> usize {
        self.shown
    }

    /// Returns the reason why not everything was searched, if there is one.
    pub(super) fn stopped(&self) -> Option<&'static str> {
        self.stopped
    }

    /// Returns the lines, each with its place.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Searches one file, in memory that does not depend on its size. A binary file is left at its first NUL byte. Returns
    /// false if the time is over or `cancel` was given.
    pub(super) fn file(&mut self, name: &str, file: File, pattern: &RegexMatcher, cancel: &Cancel) -> bool {
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_LINE))
            .before_context(self.limits.context)
            .after_context(self.limits.context)
            .build();
        let input = Interruptible { file, cancel, end: self.started + TIME_LIMIT };
        // An error of the file ends the search in it: a line that is too long, or one that cannot be read.
        let result = searcher.search_reader(pattern, input, LineSink { search: self, name });
        match result {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.stopped = Some("it took too long");
                false
            }
            Err(_) | Ok(()) => !cancel.is_cancelled(),
        }
    }

    fn add(&mut self, name: &str, number: Option<u64>, mark: char, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\n', '\r']);
        let end = line.floor_char_boundary(MAX_SHOWN);
        let cut = if end < line.len() { "…" } else { "" };
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let number = number.unwrap_or(0);
        self.text.push_str(&format!("{name}{mark}{number}{mark} {}{cut}", &line[..end]));
    }

    fn has_room(&self) -> bool {
        self.shown < self.limits.lines && self.text.len() < MAX_OUTPUT
    }
}

/// Takes the lines of one file.
struct LineSink<'a> {
    search: &'a mut FileSearch,
    name: &'a str,
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.search.matching += 1;
        if self.search.has_room() {
            self.search.shown += 1;
            self.search.add(self.name, found.line_number(), ':', found.bytes());
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        // The lines after the last match that is shown belong to it, and the lines before the next one do not.
        if self.search.has_room()
            || *around.kind() == SinkContextKind::After && self.search.shown == self.search.matching
        {
            self.search.add(self.name, around.line_number(), '-', around.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.search.has_room() && !self.search.text.is_empty() {
            self.search.text.push_str("\n--");
        }
        Ok(true)
    }
}

/// A file whose reading ends early with an error.
pub(super) struct Interruptible<'a> {
    pub file: File,
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
