//! Turns back a change that adds lines at one end of a file where the request names the other end.

use super::{Judged, Request, TurnedBack, edit_advice};

pub(super) const ADDING: [&str; 6] = ["add", "append", "insert", "put", "write", "prepend"];

/// The words before the name of a file whose end is meant, in lower case.
const AT_END: [&str; 4] = ["at the end of", "to the end of", "at the bottom of", "to the bottom of"];
const AT_START: [&str; 6] = [
    "at the beginning of",
    "to the beginning of",
    "at the start of",
    "at the top of",
    "to the top of",
    "to the start of",
];

/// The maximum number of lines with which an end is named.
const MAX_LINES: usize = 5;
/// The maximum length of the text that an edit is told to write, in bytes.
const MAX_TEXT: usize = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Start,
    End,
}

pub(super) fn judge(request: &Request, change: &Judged<'_>) -> Option<TurnedBack> {
    let end = wanted_end(request, change.path)?;
    let (old, new) = (filled_lines(change.old), filled_lines(change.new));
    let is_wrong = match end {
        End::End => !new.starts_with(&old) && new.last() == old.last(),
        End::Start => !new.ends_with(&old) && new.first() == old.first(),
    };
    let edge = if end == End::End { old.last()? } else { old.first()? };
    if !is_wrong || new.len() <= old.len() || is_frame(edge) {
        return None;
    }
    let (wanted, edge) = match end {
        End::End => ("at the end", "after its last line"),
        End::Start => ("at the beginning", "before its first line"),
    };
    let fact = format!(
        "Nothing was changed: the request wants the new lines {wanted} of {path}, and this does not put them {edge}.",
        path = change.path
    );
    let advice = advice(end, change);
    Some(TurnedBack { fact, advice })
}

/// Returns the edit that puts the added lines where they belong.
fn advice(end: End, change: &Judged<'_>) -> Option<String> {
    let (gone, added, _) = change.changed_lines();
    if !gone.is_empty() {
        return None;
    }
    edge_with(end, change, added.join("\n").trim_matches('\n'))
}

/// Returns the edit that puts a text at an end of the file.
pub(super) fn edge_with(end: End, change: &Judged<'_>, added: &str) -> Option<String> {
    let lines: Vec<&str> = change.old.trim_matches('\n').lines().collect();
    let known = (1..=lines.len().min(MAX_LINES))
        .map(|count| match end {
            End::End => lines[lines.len() - count..].join("\n"),
            End::Start => lines[..count].join("\n"),
        })
        .find(|text| change.old.matches(text.as_str()).count() == 1)?;
    let new = match end {
        End::End => format!("{known}\n{added}"),
        End::Start => format!("{added}\n{known}"),
    };
    (new.len() <= MAX_TEXT).then(|| edit_advice(&known, &new))
}

/// Returns the end of this file at which the request wants something added.
pub(super) fn wanted_end(request: &Request, path: &str) -> Option<End> {
    if !request.has_word(&ADDING) {
        return None;
    }
    let names = |phrases: &[&str]| {
        request
            .changes
            .iter()
            .any(|sentence| phrases.iter().any(|phrase| has_file_behind(sentence, phrase, path)))
    };
    match (names(&AT_START), names(&AT_END)) {
        (true, false) => Some(End::Start),
        (false, true) => Some(End::End),
        (true, true) | (false, false) => None,
    }
}

/// Returns true if `phrase` stands in the sentence before the name of the file, or before "the file" and "it".
fn has_file_behind(sentence: &str, phrase: &str, path: &str) -> bool {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    sentence.match_indices(phrase).any(|(at, _)| {
        let behind = sentence[at + phrase.len()..].split_whitespace();
        let mut words = behind.map(|word| {
            word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '/' | '-'))
                .trim_end_matches('.')
        });
        let word = words.find(|word| *word != "the").unwrap_or_default();
        let word = word.trim_start_matches("./");
        ["file", "it"].contains(&word) || word == path || word == name
    })
}

/// Returns the lines that are not blank, without spaces at their ends.
fn filled_lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// Returns true for a line that closes or opens what is around the content, such as `}`, `</html>` and `#!/bin/sh`.
fn is_frame(line: &str) -> bool {
    let line = line.trim();
    !line.contains(char::is_alphanumeric)
        || ["</", "<!", "<?", "#!", "end"].iter().any(|start| line.starts_with(start))
        || ["{", "[", "("].iter().any(|end| line.ends_with(end))
        || ["}", "]", ")"].iter().any(|start| line.starts_with(start))
}
