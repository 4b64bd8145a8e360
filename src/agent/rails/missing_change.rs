//! Notices an answer to a request for a change where no file was changed: the model printed the code, or said that it was
//! done.

use crate::{
    agent::protocol::{FailureKind, RunError},
    provider::{FinishReason, Turn},
};

use super::{
    change_request::AskedChange,
    file_changes::FileChanges,
    unfinished_answers::{AnswerCheck, MAX_ASKED_AGAIN, hint},
};

pub(super) const NOTE: &str = "No file has been changed yet. Call write_file or edit_file now.";

const NO_CHANGE: &str = "the model was asked for a change and changed no file";

/// The change of files that a request asks for, where the run has the tools for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::agent) enum ExpectedChange {
    #[default]
    None,
    /// A model that has not made it is told so.
    Some,
    /// The model does not read what it is told, so its first answer counts.
    AtOnce,
}

impl ExpectedChange {
    /// `can_be_made` says that the run has the tools for a change, and `reads_notes` that the model reads the conversation.
    pub(in crate::agent) fn new(asked: AskedChange, can_be_made: bool, reads_notes: bool) -> Self {
        match reads_notes {
            // A file that is to be gone is looked for at the end.
            true if asked.content && can_be_made => Self::Some,
            false if asked.any() && can_be_made => Self::AtOnce,
            _ => Self::None,
        }
    }
}

/// Follows whether the change that a run was asked for was made.
#[derive(Default)]
pub(in crate::agent) struct MissingChange {
    expected: ExpectedChange,
    /// A person or a client decided about a change.
    was_decided: bool,
    asked_again: u32,
}

impl MissingChange {
    pub(in crate::agent) fn new(expected: ExpectedChange) -> Self {
        Self { expected, ..Self::default() }
    }

    /// Returns true if the model can be told that it has to change a file.
    pub(super) fn is_expected(&self) -> bool {
        self.expected == ExpectedChange::Some
    }

    /// Notes a call about which more cannot be asked of the model: it was denied, or its effect is not known.
    pub(super) fn note_decision(&mut self) {
        self.was_decided = true;
    }

    /// Returns true if the model was told that it has to change a file and has not done so. `files_differ` says that a
    /// file differs from what it was before the run.
    pub(super) fn is_overdue(&self, files_differ: bool) -> bool {
        self.asked_again > 0 && !self.was_decided && !files_differ
    }

    /// Returns true if a file was to be changed, and none was.
    pub(super) fn is_open(&self, files_differ: bool) -> bool {
        self.is_expected() && !self.was_decided && !files_differ
    }

    /// Judges an answer without calls.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked again too often, or does not read what it is told.
    pub(super) fn check(&mut self, turn: &Turn, files: &FileChanges) -> Result<AnswerCheck, RunError> {
        // A file that was as the request wants it before the run is not changed.
        if self.expected == ExpectedChange::AtOnce && !self.was_decided && !files.any_carried_out() {
            let fact = files
                .failure()
                .map_or_else(|| NO_CHANGE.to_owned(), |why| format!("no file was changed: {why}"));
            return Err(RunError::new(FailureKind::Model, fact).hint(
                "the small built-in model changes only what a request gives word for word; `kontekst init` finds or \
                 fetches a larger one",
            ));
        }
        // An answer that was cut has an ending of its own.
        if !self.is_open(files.differ()) || turn.finish_reason == FinishReason::Length {
            return Ok(AnswerCheck::Finished);
        }
        if self.asked_again == MAX_ASKED_AGAIN {
            return Err(RunError::new(FailureKind::Model, NO_CHANGE)
                .hint(hint("ask in other words, or use a larger model (`kontekst models`)")));
        }
        self.asked_again += 1;
        Ok(AnswerCheck::AskAgain { fact: NO_CHANGE.to_owned(), message: NOTE.to_owned(), must_call: true })
    }
}
