//! Finds where a text still stands that was to be replaced at all its places.

use std::time::{Duration, Instant};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, Sink, SinkMatch};

use super::{
    MAX_FILES,
    file_search::{self, Input, Interruptible},
    lines::Limits,
};
use crate::{
    core::Cancel,
    tools::{Effect, WorkDir, Workspace, builtin::walk, read_effect},
};

/// The maximum number of places that are returned for one text.
const MAX_PLACES: usize = 8;
/// The time for the list of the files, and the time for the search in them.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// The extensions of files that a text or an import may name without the whole path. There is no tool that renames files.
const EXTENSIONS: &[&str] = &[
    "c", "cfg", "cpp", "css", "csv", "go", "h", "hpp", "html", "ini", "java", "js", "json", "md", "php",
    "py", "rb", "rs", "sh", "toml", "ts", "txt", "xml", "yaml", "yml",
];

/// A text that was to be replaced.
#[derive(Clone, Debug)]
pub struct ReplacedText {
    pub old: String,
    pub new: String,
    /// The names of the files in which it was to be replaced. `None` means all files of the working directory.
    pub files: Option<Vec<String>>,
}

/// A line in which a replaced text still stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemainingPlace {
    pub path: String,
    /// Counted from 1.
    pub number: u64,
    /// The text of the line without its end.
    pub line: String,
}

/// Returns the first places of the old text. A part of a longer word, a part of the new text and the
/// name of a file do not count.
///
/// Looks at the files that `search_files` looks at without a question, for a few seconds at most. What is not found by
/// then does not stand anywhere.
pub fn remaining_places(work_dir: &WorkDir, text: &ReplacedText, cancel: &Cancel) -> Vec<RemainingPlace> {
    work_dir.run_sandboxed(|workspace| {
        if read_effect::of_directory(workspace) != Effect::Reads {
            return Vec::new();
        }
        let Some(pattern) = pattern(&text.old) else { return Vec::new() };
        let files = files(workspace, text.files.as_deref(), cancel);
        let mut places = Vec::new();
        let end = Instant::now() + TIME_LIMIT;
        for name in files {
            if places.len() == MAX_PLACES || cancel.is_cancelled() || Instant::now() > end {
                break;
            }
            let mut file_places = Places { name: &name, text, places: &mut places };
            find_in_file(workspace, &pattern, &mut file_places, end, cancel);
        }
        places
    })
}

/// Returns the first files that have the text by itself, at most `max` of them, as far as they are found within `time`.
pub(in crate::tools::builtin) fn files_with(
    workspace: &Workspace,
    text: &str,
    max: usize,
    time: Duration,
    cancel: &Cancel,
) -> Vec<String> {
    let end = Instant::now() + time;
    let Some(pattern) = pattern(text) else { return Vec::new() };
    let text = ReplacedText { old: text.to_owned(), new: String::new(), files: None };
    let mut found = Vec::new();
    for name in walk::all_files(workspace, MAX_FILES, time, cancel) {
        if found.len() == max || cancel.is_cancelled() || Instant::now() > end {
            break;
        }
        let mut places = Vec::new();
        let mut file_places = Places { name: &name, text: &text, places: &mut places };
        find_in_file(workspace, &pattern, &mut file_places, end, cancel);
        if !places.is_empty() {
            found.push(name);
        }
    }
    found
}

/// Returns what finds the lines with the text. There is nothing for a text of several lines.
fn pattern(text: &str) -> Option<RegexMatcher> {
    RegexMatcherBuilder::new().fixed_strings(true).line_terminator(Some(b'\n')).build(text).ok()
}

/// Adds the places in one file. A file that a person would be asked about has none.
fn find_in_file(
    workspace: &Workspace,
    pattern: &RegexMatcher,
    places: &mut Places<'_>,
    end: Instant,
    cancel: &Cancel,
) {
    let Ok(path) = workspace.path(places.name) else { return };
    if read_effect::of_file(workspace, &path) != Effect::Reads {
        return;
    }
    let Ok(file) = workspace.open(&path) else { return };
    let input = Input::File(Interruptible::new(&file, cancel, end));
    file_search::search(&mut file_search::searcher(Limits::default()), pattern, input, places);
}

/// Returns the files to look at. A name without a directory may also mean the only file of this name below.
fn files(workspace: &Workspace, wanted: Option<&[String]>, cancel: &Cancel) -> Vec<String> {
    let exists = |name: &str| workspace.path(name).is_ok_and(|path| workspace.open(&path).is_ok());
    if let Some(names) = wanted
        && names.iter().all(|name| exists(name))
    {
        return names.to_vec();
    }
    let all = walk::all_files(workspace, MAX_FILES, TIME_LIMIT, cancel);
    let Some(wanted) = wanted else { return all };
    let found = |name: &String| match exists(name) {
        true => Some(name.clone()),
        false => walk::only_file_named(name, &all).cloned(),
    };
    wanted.iter().filter_map(found).collect()
}

/// Takes the lines of one file.
struct Places<'a> {
    name: &'a str,
    text: &'a ReplacedText,
    places: &'a mut Vec<RemainingPlace>,
}

impl Sink for &mut Places<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> std::io::Result<bool> {
        let line = String::from_utf8_lossy(found.bytes());
        if stands_in(&line, &self.text.old, &self.text.new) {
            self.places.push(RemainingPlace {
                path: self.name.to_owned(),
                number: found.line_number().unwrap_or(0),
                line: line.trim_end_matches(['\r', '\n']).to_owned(),
            });
        }
        Ok(self.places.len() < MAX_PLACES)
    }
}

/// Returns true if the line has the old text by itself: not as a part of a longer word, of the new text or of the name of a file.
pub fn stands_in(line: &str, old: &str, new: &str) -> bool {
    let replaced: Vec<usize> =
        if new.contains(old) { line.match_indices(new).map(|(at, _)| at).collect() } else { Vec::new() };
    line.match_indices(old).any(|(at, _)| {
        let end = at + old.len();
        let is_replaced = replaced.iter().any(|&start| start <= at && end <= start + new.len());
        !is_replaced && is_whole(old, &line[..at], &line[end..])
    })
}

/// Returns true if the old text is no part of a longer word between these texts. For a name also hyphens and slashes
/// make a longer word, and it is not the beginning of the name of a file.
fn is_whole(old: &str, before: &str, after: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    let (mut back, mut ahead) = (before.chars().rev(), after.chars());
    let (previous, next) = (back.next(), ahead.next());
    let continues =
        |edge: Option<char>, outside: Option<char>| edge.is_some_and(joins) && outside.is_some_and(joins);
    if continues(old.chars().next(), previous) || continues(old.chars().next_back(), next) {
        return false;
    }
    if !old.chars().all(joins) {
        return true;
    }
    let hyphenated = previous == Some('-') && back.next().is_some_and(joins)
        || next == Some('-') && ahead.next().is_some_and(char::is_alphabetic);
    let in_path = previous == Some('/') || next == Some('/');
    let extension = after.strip_prefix('.').map(|rest| rest.split(|c| !joins(c)).next().unwrap_or(rest));
    let is_file = extension.is_some_and(|extension| {
        EXTENSIONS.contains(&extension) && !after[1 + extension.len()..].starts_with(['(', '[', '.'])
    });
    !hyphenated && !in_path && !is_file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_text_counts() {
        for (line, old, new) in [
            ("x = calc(1)", "calc", "subtotal"),
            ("self.load()", "load", "load_all"),
            ("load_all(); load()", "load", "load_all"),
            ("limits.MAX items", "MAX", "MAX_ITEMS"),
            ("-MAX + MAX-1", "MAX", "MAX_ITEMS"),
            ("Tom's dog", "Tom", "Max"),
            ("http://localhost:80/a", "localhost:80", "example.org"),
            ("a->b", "->", "=>"),
            ("Good mornin", "Good mornin", "Good morning"),
            ("load.c(1)", "load", "read"),
        ] {
            assert!(stands_in(line, old, new), "{line}");
        }
        for (line, old, new) in [
            ("calculate recalc calc_1", "calc", "subtotal"),
            ("load_all() and my-load", "load", "load_all"),
            ("my-load", "load", "my-load"),
            ("Good morning", "Good mornin", "Good morning"),
            ("see load.py and src/load/a", "load", "read"),
            ("a load-bearing wall", "load", "read"),
            ("a ...b", ".", "..."),
            ("store.load()", "load", "store.load"),
        ] {
            assert!(!stands_in(line, old, new), "{line}");
        }
    }
}
