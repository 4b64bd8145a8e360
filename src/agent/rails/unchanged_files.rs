//! Notices that a file was not changed or created that the request names.

use std::collections::HashMap;

use crate::agent::protocol::{FailureKind, RunError};

use super::{
    change_request::{RequestedFile, requested_files},
    unfinished_answers::{AnswerCheck, MAX_ASKED_AGAIN},
};

/// Follows whether the files were changed that a run was asked to change.
#[derive(Default)]
pub(in crate::agent) struct UnchangedFiles {
    requested: Vec<RequestedFile>,
    /// A person or a client decided about a change.
    was_decided: bool,
    /// The number of times that the model was asked for each file.
    asked_again: HashMap<String, u32>,
}

impl UnchangedFiles {
    /// `request` is what the user wrote. `change_expected` says that it clearly asks for a change of files, and that the run
    /// has the tools for it.
    pub(super) fn new(request: &str, change_expected: bool) -> Self {
        let requested = if change_expected { requested_files(request) } else { Vec::new() };
        Self { requested, ..Self::default() }
    }

    /// Notes a call about which more cannot be asked of the model: it was denied, or its effect is not known.
    pub(super) fn note_decision(&mut self) {
        self.was_decided = true;
    }

    /// Returns the files of the request that are none of those that the run has changed. A changed file of the same name in
    /// another directory counts, because the request may have the wrong directory.
    pub(super) fn wanted(&self, changed: &[String]) -> Vec<RequestedFile> {
        if self.was_decided {
            return Vec::new();
        }
        let is_changed = |file: &&RequestedFile| changed.iter().any(|path| name(path) == name(&file.path));
        self.requested.iter().filter(|file| !is_changed(file)).cloned().collect()
    }

    /// Judges an answer after which this file is as it was.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked for this file too often.
    pub(super) fn check(&mut self, file: &RequestedFile) -> Result<AnswerCheck, RunError> {
        let RequestedFile { path, is_new, clause } = file;
        let fact = match is_new {
            true => format!("{path} was to be created and does not exist"),
            false => format!("{path} was to be changed and is as it was"),
        };
        let times = self.asked_again.entry(path.clone()).or_default();
        if *times == MAX_ASKED_AGAIN {
            return Err(RunError::new(FailureKind::Model, fact).hint(
                "ask for one file at a time, or use a larger model (`kontekst models`); without this check: \
                 `unfinished = false` under [rails] of the agent",
            ));
        }
        *times += 1;
        Ok(AnswerCheck::AskAgain {
            message: format!("The request is not done: {fact}. Do this now: {clause}"),
            fact,
            must_call: true,
        })
    }
}

/// Returns the last part of a path.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
