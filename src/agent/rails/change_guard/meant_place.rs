//! Finds out which of several equal places in a file the request means, by the words around them: the section, the function
//! or the key that a place belongs to.

use std::collections::HashSet;

use super::{Edit, Judged, Request, TurnedBack, edit_advice, request::place_words};

/// The maximum number of equal places.
const MAX_PLACES: usize = 20;
/// The maximum number of changed lines of an edit that is compared with other places.
const MAX_LINES: usize = 5;
/// The maximum length of a text that an edit is told to replace, in bytes.
const MAX_TEXT: usize = 400;

/// The equal places of a text.
struct Places<'a> {
    content: &'a str,
    /// The offsets of the places.
    offsets: Vec<usize>,
    /// The length of the text.
    length: usize,
}

/// The place that the request means.
struct Meant<'a> {
    offset: usize,
    /// The word of the request that says so.
    word: String,
    /// The line to which the place belongs, and which has the word.
    heading: &'a str,
}

/// Judges an edit of one place: the same lines stand elsewhere, and the request means that place.
pub(super) fn judge(request: &Request, change: &Judged<'_>) -> Option<TurnedBack> {
    change.edit.filter(|edit| !edit.all_places)?;
    let (old, new, before) = change.changed_lines();
    if old.is_empty() || old.len() > MAX_LINES || new.len() > MAX_LINES || request.may_mean_all() {
        return None;
    }
    let start: usize = change.old.split_inclusive('\n').take(before).map(str::len).sum();
    let text = old.join("\n");
    let starts_line = |offset: usize| offset == 0 || change.old[..offset].ends_with('\n');
    let ends_line = |end: usize| end == change.old.len() || change.old[end..].starts_with('\n');
    let offsets: Vec<usize> = change
        .old
        .match_indices(&text)
        .map(|(offset, _)| offset)
        .filter(|&offset| starts_line(offset) && ends_line(offset + text.len()))
        .collect();
    let places = Places { content: change.old, offsets, length: text.len() };
    let meant = places.meant(request)?;
    if meant.offset == start {
        return None;
    }
    let line = before + 1;
    Some(TurnedBack {
        fact: format!("Nothing was changed: the edit is for line {line} of {}.", change.path),
        advice: Some(places.advice(&meant, &new.join("\n"))),
    })
}

/// Returns what to do instead of an edit whose text stands in the file several times.
pub(super) fn advice_on_several(request: &Request, content: &str, edit: Edit<'_>) -> Option<String> {
    if request.may_mean_all() {
        return None;
    }
    let offsets = content.match_indices(edit.old_str).map(|(offset, _)| offset).collect();
    let places = Places { content, offsets, length: edit.old_str.len() };
    let meant = places.meant(request)?;
    Some(places.advice(&meant, edit.new_str))
}

impl<'a> Places<'a> {
    /// Returns the place around which the request has more words than around any other one. The words of no other place may
    /// be missing there: "the timeout of the client and of the server" means two.
    fn meant(&self, request: &Request) -> Option<Meant<'a>> {
        if !(2..=MAX_PLACES).contains(&self.offsets.len()) {
            return None;
        }
        let wanted = request.place_words();
        let around: Vec<Vec<(&'a str, HashSet<String>)>> =
            self.offsets.iter().map(|&offset| self.words_around(offset, &wanted)).collect();
        let all = |place: &[(&'a str, HashSet<String>)]| -> HashSet<String> {
            place.iter().flat_map(|(_, words)| words.iter().cloned()).collect()
        };
        let words: Vec<HashSet<String>> = around.iter().map(|place| all(place)).collect();
        let is_best = |at: usize| {
            (0..words.len()).all(|other| {
                other == at || (words[at].len() > words[other].len() && words[other].is_subset(&words[at]))
            })
        };
        let best = (0..words.len()).find(|&at| is_best(at))?;
        let elsewhere: HashSet<&String> =
            words.iter().enumerate().filter(|(at, _)| *at != best).flat_map(|(_, words)| words).collect();
        let (heading, word) = around[best].iter().find_map(|(line, words)| {
            let word = words.iter().filter(|word| !elsewhere.contains(word)).min()?;
            Some((*line, word.clone()))
        })?;
        Some(Meant { offset: self.offsets[best], word, heading })
    }

    /// Returns the lines that a place is in and belongs to, nearest first, each with its words that the request has.
    fn words_around(&self, offset: usize, wanted: &HashSet<&str>) -> Vec<(&'a str, HashSet<String>)> {
        let first = self.line_start(offset);
        let last = self.line_end(offset + self.length);
        let own = self.content[first..last].lines();
        let words = |line: &'a str| {
            let lower = line.to_lowercase();
            let words = place_words(&lower).filter(|word| wanted.contains(word)).map(str::to_owned);
            (line, words.collect())
        };
        own.chain(headings(&self.content[..first], indentation(&self.content[first..last])))
            .map(words)
            .collect()
    }

    fn line_start(&self, offset: usize) -> usize {
        self.content[..offset].rfind('\n').map_or(0, |newline| newline + 1)
    }

    fn line_end(&self, offset: usize) -> usize {
        self.content[offset..].find('\n').map_or(self.content.len(), |newline| offset + newline)
    }

    /// Says which place is meant, and with which edit `new_str` is put there.
    fn advice(&self, meant: &Meant<'_>, new_str: &str) -> String {
        let Meant { offset, word, heading } = meant;
        let line = self.content[..*offset].matches('\n').count() + 1;
        let heading = heading.trim();
        let place =
            format!("The request speaks of \"{word}\": that is line {line}, which belongs to `{heading}`.");
        let end = self.line_end(offset + self.length);
        let starts = self.content[..*offset].rmatch_indices('\n').map(|(newline, _)| newline + 1).chain([0]);
        let unique = starts
            .take_while(|start| end - start <= MAX_TEXT)
            .find(|start| self.content.matches(&self.content[*start..end]).count() == 1);
        let Some(start) = unique else { return place };
        let new =
            format!("{}{new_str}{}", &self.content[start..*offset], &self.content[offset + self.length..end]);
        format!("{place} {}", edit_advice(&self.content[start..end], &new))
    }
}

/// Returns the lines to which a line below `before` with this indentation belongs, nearest first: those that are indented
/// less, and the comments, the section and the heading above it.
fn headings(before: &str, indentation_of_line: usize) -> Vec<&str> {
    let mut found = Vec::new();
    let mut indented = indentation_of_line;
    let (mut is_next, mut has_title) = (true, false);
    for line in before.lines().rev() {
        let text = line.trim();
        if text.is_empty() {
            is_next = false;
            continue;
        }
        let is_comment = text.starts_with("//") || text.starts_with('#') || text.starts_with("--");
        let is_section = indentation(line) == 0 && text.starts_with('[') && text.ends_with(']');
        let is_title = !has_title && (is_section || (indentation(line) == 0 && text.starts_with("# ")));
        if indentation(line) < indented || (is_next && is_comment) || is_title {
            found.push(line);
            indented = indented.min(indentation(line));
        }
        has_title |= is_title;
        is_next &= is_comment;
        if is_section {
            break;
        }
    }
    found
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
