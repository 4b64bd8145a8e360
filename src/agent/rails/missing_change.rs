//! Notices an answer to a request for a change where no file was changed: the model printed the code, or said that it was
//! done.

use crate::{
    agent::protocol::{FailureKind, RunError},
    provider::{FinishReason, Turn},
};

use super::unfinished_answers::{AnswerCheck, MAX_ASKED_AGAIN};

pub(super) const NOTE: &str = "No file has been changed yet. Call write_file or edit_file now.";

/// Follows whether the change that a run was asked for was made.
#[derive(Default)]
pub(in crate::agent) struct MissingChange {
    /// The request asks for a change, and the run has the tools for it.
    is_expected: bool,
    /// A person or a client decided about a change.
    was_decided: bool,
    asked_again: u32,
}

impl MissingChange {
    pub(in crate::agent) fn new(is_expected: bool) -> Self {
        Self { is_expected, ..Self::default() }
    }

    pub(super) fn is_expected(&self) -> bool {
        self.is_expected
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
        self.is_expected && !self.was_decided && !files_differ
    }

    /// Judges an answer without calls.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked again too often.
    pub(super) fn check(&mut self, turn: &Turn, files_differ: bool) -> Result<AnswerCheck, RunError> {
        // An answer that was cut has an ending of its own.
        if !self.is_open(files_differ) || turn.finish_reason == FinishReason::Length {
            return Ok(AnswerCheck::Finished);
        }
        let fact = "the model was asked for a change and changed no file".to_owned();
        if self.asked_again == MAX_ASKED_AGAIN {
            return Err(RunError::new(FailureKind::Model, fact).hint(
                "ask in other words, or use a larger model (`kontekst models`); without this check: \
                 `unfinished = false` under [rails] of the agent",
            ));
        }
        self.asked_again += 1;
        Ok(AnswerCheck::AskAgain { fact, message: NOTE.to_owned(), must_call: true })
    }
}
