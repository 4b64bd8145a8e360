//! Searches the files of a tree on a few threads. The result is the same as that of one.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use grep_regex::RegexMatcher;
use grep_searcher::Searcher;

use super::{
    file_search::{self, Input, Interruptible},
    lines::{Limits, Lines, Part},
};
use crate::{
    core::Cancel,
    tools::{
        Workspace,
        read_effect::{OpenDirs, Opened},
    },
};

/// The maximum time of one search.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The number of files that a thread takes at a time.
const FILES_AT_ONCE: usize = 32;
/// A file of fewer bytes is read at once.
const SMALL_FILE: usize = 64 * 1024;
/// The maximum number of threads.
const MAX_THREADS: usize = 4;

/// The patterns of a search. The plain text counts only if the regular expression matches no line.
pub(super) struct Query {
    pub regex: Option<RegexMatcher>,
    pub plain: Option<RegexMatcher>,
    pub limits: Limits,
}

/// The result of a search.
#[derive(Default)]
pub(super) struct Found {
    pub lines: Lines,
    /// The number of files that were searched.
    pub searched: usize,
    /// The number of files that were not searched because their names say that they hold secrets or settings.
    pub withheld: usize,
    /// The reason why not everything was searched.
    pub stopped: Option<&'static str>,
}

/// Searches the files. Each thread keeps as many lines as are shown at most, and some numbers for every batch.
pub(super) fn search_all(workspace: &Workspace, names: &[String], query: &Query, cancel: &Cancel) -> Found {
    let search = TreeSearch {
        workspace,
        names,
        query,
        cancel,
        end: Instant::now() + TIME_LIMIT,
        next: AtomicUsize::new(0),
        has_regex_match: AtomicBool::new(false),
    };
    let mut batches = search.run_on_threads();
    batches.sort_unstable_by_key(|batch| batch.number);
    let (mut regex, mut plain) = (Lines::new(query.limits), Lines::new(query.limits));
    let mut found = Found::default();
    for (number, batch) in batches.into_iter().enumerate() {
        // The lines after a batch that is missing are not shown, because they would not be the first ones.
        if number != batch.number {
            found.stopped = Some(TOO_LONG);
        }
        if found.stopped.is_some() {
            break;
        }
        regex.add_part(batch.regex);
        plain.add_part(batch.plain);
        found.searched += batch.searched;
        found.withheld += batch.withheld;
        found.stopped = batch.is_stopped.then_some(TOO_LONG);
    }
    found.lines = if regex.matching() == 0 { plain } else { regex };
    found
}

const TOO_LONG: &str = "it took too long";

struct TreeSearch<'a> {
    workspace: &'a Workspace,
    names: &'a [String],
    query: &'a Query,
    cancel: &'a Cancel,
    end: Instant,
    /// The number of the batch that the next free thread takes.
    next: AtomicUsize,
    has_regex_match: AtomicBool,
}

/// The result of some files that follow each other.
struct Batch {
    number: usize,
    regex: Part,
    plain: Part,
    searched: usize,
    withheld: usize,
    is_stopped: bool,
}

impl TreeSearch<'_> {
    fn run_on_threads(&self) -> Vec<Batch> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(MAX_THREADS).min(self.names.len().div_ceil(FILES_AT_ONCE));
        thread::scope(|scope| {
            // A thread that is started here has the restrictions of this one.
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| Worker::new(self).run())).collect();
            let mut batches = Worker::new(self).run();
            for other in others {
                batches.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            batches
        })
    }
}

/// One thread of the search.
struct Worker<'a> {
    search: &'a TreeSearch<'a>,
    searcher: Searcher,
    dirs: OpenDirs<'a>,
    /// For the content of one small file.
    buffer: Box<[u8]>,
    regex: Lines,
    plain: Lines,
}

impl<'a> Worker<'a> {
    fn new(search: &'a TreeSearch<'a>) -> Self {
        let limits = search.query.limits;
        Self {
            search,
            searcher: file_search::searcher(limits),
            dirs: OpenDirs::new(search.workspace),
            buffer: vec![0; SMALL_FILE].into(),
            regex: Lines::new(limits),
            plain: Lines::new(limits),
        }
    }

    fn run(mut self) -> Vec<Batch> {
        let mut batches = Vec::new();
        loop {
            let number = self.search.next.fetch_add(1, Ordering::Relaxed);
            let Some(names) = self.search.names.chunks(FILES_AT_ONCE).nth(number) else { return batches };
            let batch = self.batch(number, names);
            let is_stopped = batch.is_stopped;
            batches.push(batch);
            if is_stopped {
                return batches;
            }
        }
    }

    fn batch(&mut self, number: usize, names: &[String]) -> Batch {
        let (regex_before, plain_before) = (self.regex.matching(), self.plain.matching());
        let (mut searched, mut withheld, mut is_stopped) = (0, 0, false);
        for name in names {
            if self.search.cancel.is_cancelled() {
                is_stopped = true;
                break;
            }
            match self.dirs.open(name) {
                Opened::Withheld => withheld += 1,
                // A file that was removed or cannot be read has no lines.
                Opened::Unreadable => {}
                Opened::File(file, bytes) => {
                    searched += 1;
                    if !self.file(name, &file, bytes) {
                        is_stopped = true;
                        break;
                    }
                }
            }
        }
        let (regex, plain) = (self.regex.take_part(regex_before), self.plain.take_part(plain_before));
        Batch { number, regex, plain, searched, withheld, is_stopped }
    }

    /// Returns false if the search ends here.
    fn file(&mut self, name: &str, mut file: &File, bytes: Option<u64>) -> bool {
        let TreeSearch { query, cancel, end, has_regex_match, .. } = self.search;
        if Instant::now() > *end {
            return false;
        }
        // A small file is read once for both patterns, in one system call.
        let whole = bytes.and_then(|bytes| read_whole(file, bytes, &mut self.buffer));
        let input = || match whole {
            Some(length) => Input::Whole(&self.buffer[..length]),
            None => Input::File(Interruptible { file, cancel, end: *end }),
        };
        if let Some(pattern) = &query.regex {
            if !file_search::search(&mut self.searcher, pattern, name, input(), &mut self.regex) {
                return false;
            }
            if self.regex.matching() > 0 {
                has_regex_match.store(true, Ordering::Relaxed);
            }
        }
        let Some(pattern) = &query.plain else { return true };
        if has_regex_match.load(Ordering::Relaxed)
            || query.regex.is_some() && whole.is_none() && file.rewind().is_err()
        {
            return true;
        }
        file_search::search(&mut self.searcher, pattern, name, input(), &mut self.plain)
    }
}

/// Reads a file that fits into the buffer. Returns `None` if it does not, or has another length than `bytes`. What was read of
/// it is read again then.
fn read_whole(mut file: &File, bytes: u64, buffer: &mut [u8]) -> Option<usize> {
    let length = usize::try_from(bytes).ok().filter(|length| *length < buffer.len())?;
    if file.read(buffer).is_ok_and(|read| read == length) {
        return Some(length);
    }
    file.rewind().ok()?;
    None
}
