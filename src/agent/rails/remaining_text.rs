//! Notices that a text still stands somewhere that was to be replaced at all its places.

use serde_json::Value;

use crate::{
    agent::protocol::{FailureKind, RunError},
    tools::builtin::{RemainingPlace, ReplacedText},
};

use super::{
    change_request::{Place, Replacement, replacements},
    unfinished_answers::{AnswerCheck, MAX_ASKED_AGAIN, hint},
};

/// The longest text that a message repeats, in bytes.
const MAX_TEXT: usize = 80;

/// The longest line of which a message has the edit, in bytes.
const MAX_LINE: usize = 200;

/// Follows whether the replacements that a run was asked for were made.
#[derive(Default)]
pub(in crate::agent) struct RemainingText {
    replacements: Vec<Replacement>,
    /// A person or a client decided about a change.
    was_decided: bool,
    asked_again: u32,
}

impl RemainingText {
    /// `request` is what the user wrote. `change_expected` says that it clearly asks for a change of files. If it does not,
    /// only the files count that the run changes.
    pub(super) fn new(request: &str, change_expected: bool) -> Self {
        let mut replacements = replacements(request);
        replacements.retain(|replacement| change_expected || replacement.place == Place::ChangedFiles);
        Self { replacements, ..Self::default() }
    }

    /// Notes a call about which more cannot be asked of the model: it was denied, or its effect is not known.
    pub(super) fn note_decision(&mut self) {
        self.was_decided = true;
    }

    /// Returns the texts to look for. `changed` are the files that the run has changed.
    pub(super) fn wanted(&self, changed: &[String]) -> Vec<ReplacedText> {
        if self.was_decided {
            return Vec::new();
        }
        let text = |Replacement { old, new, place }: &Replacement| ReplacedText {
            old: old.clone(),
            new: new.clone(),
            files: match place {
                Place::Everywhere => None,
                Place::Files(files) => Some(files.clone()),
                Place::ChangedFiles => Some(changed.to_vec()),
            },
        };
        self.replacements.iter().map(text).collect()
    }

    /// Judges an answer after which `text` still stands at these places.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked again too often.
    pub(super) fn check(
        &mut self,
        text: &ReplacedText,
        places: &[RemainingPlace],
    ) -> Result<AnswerCheck, RunError> {
        let ReplacedText { old, new, .. } = text;
        let names: Vec<String> =
            places.iter().map(|RemainingPlace { path, number, .. }| format!("{path}:{number}")).collect();
        let fact = format!("`{}` still stands in {}", beginning(old), names.join(", "));
        if self.asked_again == MAX_ASKED_AGAIN {
            return Err(RunError::new(FailureKind::Model, fact)
                .hint(hint("ask for one file at a time, or use a larger model (`kontekst models`)")));
        }
        self.asked_again += 1;
        let edit = places.first().and_then(|place| edit(place, text)).unwrap_or_default();
        let message = format!("{fact}. Replace it there by `{}`, too.{edit}", beginning(new));
        Ok(AnswerCheck::AskAgain { fact, message, must_call: true })
    }
}

/// Returns the sentence with the edit of this line, if the line is short and has the text once.
fn edit(
    RemainingPlace { path, line, .. }: &RemainingPlace,
    ReplacedText { old, new, .. }: &ReplacedText,
) -> Option<String> {
    let is_clear = line.len() <= MAX_LINE && line.matches(&**old).count() == 1;
    is_clear.then(|| format!(" {}", edit_of_line(path, line, old, new)))
}

/// Returns the advice to replace a text where it stands first in this line.
pub(super) fn edit_of_line(path: &str, line: &str, old: &str, new: &str) -> String {
    let [path, old_str, new_str] = [path, line, &line.replacen(old, new, 1)].map(Value::from);
    format!("Call edit_file with path {path}, old_str {old_str} and new_str {new_str}.")
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}
