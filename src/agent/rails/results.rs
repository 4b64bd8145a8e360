//! Adds to the result of a call what the model reads besides it.

use super::{
    WRITE_FILE,
    changed_place::{changed_place, line_count},
    file_changes::JudgedChange,
};
use crate::{config::RailsConfig, core::ToolOutcome, tools::Change};

/// Judges a change of a file that was carried out. Returns also what the model reads about it in addition to the result of
/// the call, each part on lines of its own. Parses the file, so it may take some milliseconds.
pub(in crate::agent) fn judge_change(
    config: &RailsConfig,
    tool: &str,
    change: &Change,
) -> (JudgedChange, String) {
    let judged = JudgedChange::new(change, config.syntax);
    let mut notes = Vec::new();
    if config.shown {
        let whole = tool == WRITE_FILE || change.old.is_none();
        notes.push(if whole { line_count(change) } else { changed_place(change) });
    }
    notes.extend(judged.note());
    (judged, notes.join("\n\n"))
}

/// Appends a text to a result, after an empty line.
pub(in crate::agent) fn with_text(outcome: ToolOutcome, text: &str) -> ToolOutcome {
    if text.is_empty() {
        return outcome;
    }
    match outcome {
        ToolOutcome::Done(output) => ToolOutcome::Done(format!("{output}\n\n{text}")),
        ToolOutcome::Failed { kind, message } => ToolOutcome::failed(kind, format!("{message}\n\n{text}")),
    }
}
