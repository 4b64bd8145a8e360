//! Follows what a run makes of the files: which of them differ from before, which no longer parse, and whether the last
//! change failed.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::Value;

use super::{EDIT_FILE, WRITE_FILE, error_ladder::first_line, unfinished_answers::Unfinished};
use crate::{
    core::{ToolCall, ToolOutcome},
    tools::{Change, Fingerprint, Syntax, SyntaxError, syntax},
};

/// The tools of the daemon that change files.
pub(super) const CHANGING_TOOLS: [&str; 2] = [WRITE_FILE, EDIT_FILE];

pub(super) const REPAIR: &str = "Repair it now.";
pub(super) const REPAIR_OR_SAY: &str = "Repair it now, or say in the answer that it was not done.";

/// A file that was changed by the run.
struct ChangedFile {
    before: Fingerprint,
    now: Fingerprint,
    /// The reason why the file no longer parses, if it parsed before the run.
    error: Option<String>,
}

/// A change that was carried out, with what is costly to find out about it.
pub(in crate::agent) struct JudgedChange {
    pub(super) path: String,
    before: Fingerprint,
    now: Fingerprint,
    parsed_before: bool,
    /// The file does not parse now. Always `None` without the rail for syntax.
    error: Option<SyntaxError>,
}

impl JudgedChange {
    /// Hashes and parses the file, so it may take some milliseconds.
    pub(super) fn new(change: &Change, checks_syntax: bool) -> Self {
        let Change { path, old, new } = change;
        let error = match checks_syntax {
            true => syntax_error(path, new),
            false => None,
        };
        let old_text = old.as_deref().and_then(|old| std::str::from_utf8(old).ok());
        Self {
            path: path.clone(),
            before: old.as_deref().map_or(Fingerprint::Missing, Fingerprint::of),
            now: Fingerprint::of(new.as_bytes()),
            parsed_before: error.is_some() && old_text.is_some_and(|old| syntax(path, old) == Syntax::Valid),
            error,
        }
    }

    /// Returns what the model reads if the file no longer parses and parsed before this change.
    pub(super) fn note(&self) -> Option<String> {
        let error = self.error.as_ref().filter(|_| self.parsed_before)?;
        let advice = if error.is_certain { "Correct it now." } else { "Look at it again." };
        Some(format!("[Since this change {}. {advice}]", in_words(&self.path, error)))
    }
}

/// Returns the first error of a text.
fn syntax_error(path: &str, text: &str) -> Option<SyntaxError> {
    match syntax(path, text) {
        Syntax::Error(error) => Some(error),
        Syntax::Valid | Syntax::Unknown => None,
    }
}

/// Says that a file no longer parses, and why.
fn in_words(path: &str, error: &SyntaxError) -> String {
    let SyntaxError { format, line, column, message, is_certain } = error;
    let is = if *is_certain { "is" } else { "is perhaps" };
    format!("{path} {is} no longer valid {format}: line {line}, column {column}: {message}")
}

/// The changes of a run.
#[derive(Default)]
pub(in crate::agent) struct FileChanges {
    files: BTreeMap<String, ChangedFile>,
    /// The hashes of the files and texts of the changes that were carried out.
    carried_out: HashSet<u64>,
    /// The reason of the last change that failed, if no file was changed since.
    failure: Option<String>,
    /// The model was asked to repair the failure.
    repair_was_asked: bool,
}

impl FileChanges {
    /// Notes a change that was carried out.
    pub(super) fn note_change(&mut self, change: JudgedChange) {
        let JudgedChange { path, before, now, parsed_before, error } = change;
        if before != now {
            self.failure = None;
        }
        let name = path.clone();
        let file =
            self.files.entry(path).or_insert(ChangedFile { before, now: Fingerprint::Missing, error: None });
        file.now = now;
        file.error = error
            .filter(|error| error.is_certain && (parsed_before || file.error.is_some()))
            .map(|error| in_words(&name, &error));
    }

    /// Notes the result of a call of a tool of the daemon. A failed change that had been carried out before is no failure:
    /// the model repeats itself.
    pub(super) fn note_result(&mut self, call: &ToolCall, outcome: &ToolOutcome) {
        if !CHANGING_TOOLS.contains(&&*call.name) {
            return;
        }
        let key = key(call);
        if !outcome.is_error() {
            self.carried_out.insert(key);
        } else if !self.carried_out.contains(&key) {
            let reason = Some(first_line(outcome.text()));
            self.repair_was_asked &= self.failure == reason;
            self.failure = reason;
        }
    }

    /// Forgets what is open, because a person decided about it, or something unknown may have changed it.
    pub(in crate::agent) fn forget_open(&mut self) {
        self.failure = None;
        for file in self.files.values_mut() {
            file.error = None;
        }
    }

    /// Returns true if a change was carried out, also one after which the file is as it was.
    pub(super) fn any_carried_out(&self) -> bool {
        !self.carried_out.is_empty()
    }

    /// Returns the reason of the last change that failed, if no file was changed since.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns true if a file differs from what it was before the run.
    pub(super) fn differ(&self) -> bool {
        self.files.values().any(|file| file.before != file.now)
    }

    /// Returns true if the run has changed this file, and left nothing in it that does not parse.
    pub(in crate::agent) fn is_changed_well(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(|file| file.before != file.now && file.error.is_none())
    }

    /// Returns the files that the run has changed.
    pub(super) fn changed(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    /// Says which files the run has created and which it has changed.
    pub(super) fn in_words(&self) -> String {
        let names = |is_new: bool| -> Vec<&str> {
            let differing = self.files.iter().filter(|(_, file)| file.before != file.now);
            let wanted = differing.filter(|(_, file)| (file.before == Fingerprint::Missing) == is_new);
            wanted.map(|(path, _)| path.as_str()).collect()
        };
        let sentence = |verb: &str, names: Vec<&str>| match names.as_slice() {
            [] => None,
            [name] => Some(format!("{verb} {name}.")),
            [names @ .., last] => Some(format!("{verb} {} and {last}.", names.join(", "))),
        };
        let sentences = [sentence("Created", names(true)), sentence("Changed", names(false))];
        sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns why an answer cannot be the end yet. A change that failed counts only if `counts_failure`. The model has to
    /// try once more before it may answer that it was not done: a small one says so at once, or copies the reason.
    pub(super) fn problem(&mut self, counts_failure: bool) -> Option<Unfinished> {
        if let Some(error) = self.files.values().find_map(|file| file.error.as_ref()) {
            return Some(Unfinished {
                fact: format!("the run left a file that does not parse: {error}"),
                message: format!("Since your change {error}. Correct it now."),
                must_call: true,
            });
        }
        let reason = self.failure.as_ref().filter(|_| counts_failure)?;
        let is_first = !std::mem::replace(&mut self.repair_was_asked, true);
        let wanted = if is_first { REPAIR } else { REPAIR_OR_SAY };
        Some(Unfinished {
            fact: format!("the last change failed and was not repaired: {reason}"),
            message: format!("Your last change failed: {reason}\n{wanted}"),
            must_call: is_first,
        })
    }
}

/// Returns the hash of the file and the new text of a call.
fn key(call: &ToolCall) -> u64 {
    let args = serde_json::from_str::<Value>(&call.arguments).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    for name in ["path", "new_str", "content"] {
        args[name].as_str().hash(&mut hasher);
    }
    hasher.finish()
}
