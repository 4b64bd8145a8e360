//! Adds to the result of a change what the model reads besides it: the changed lines, and that the file no longer parses.

use super::changed_place::{changed_place, line_count};
use crate::{
    agent::ledger::FileChange,
    config::RailsConfig,
    tools::{Change, SyntaxError},
};

/// Returns what the model reads about a change of a file that was carried out. `is_whole` says that the tool has written the
/// whole file.
pub(in crate::agent) fn change_notes(
    config: &RailsConfig,
    is_whole: bool,
    change: &Change,
    judged: &FileChange,
) -> String {
    let mut notes = Vec::new();
    let is_changed = change.old.as_deref() != Some(change.new.as_bytes());
    if config.shown && is_changed {
        let is_new = is_whole && change.old.is_none();
        notes.push(if is_new { line_count(change) } else { changed_place(change) });
    }
    if let Some(error) = judged.error.as_ref().filter(|_| config.syntax) {
        let advice = if error.is_certain { "Correct it now." } else { "Look at it again." };
        notes.push(format!("[Since this change {}. {advice}]", in_words(&change.path, error)));
    }
    notes.join("\n\n")
}

/// Says that a file no longer parses, and why.
pub(super) fn in_words(path: &str, error: &SyntaxError) -> String {
    let SyntaxError { format, line, column, message, is_certain } = error;
    let is = if *is_certain { "is" } else { "is perhaps" };
    format!("{path} {is} no longer valid {format}: line {line}, column {column}: {message}")
}
