//! Notices that a file that the request names was not changed, created or removed.

use std::collections::HashMap;

use crate::agent::protocol::{FailureKind, RunError};

use super::{
    change_request::{FileAim, RequestedFile, file_name, files_for_command, requested_files},
    unfinished_answers::{AnswerCheck, MAX_ASKED_AGAIN, hint},
};

/// Follows whether the files were changed that a run was asked to change.
#[derive(Default)]
pub(in crate::agent) struct UnchangedFiles {
    requested: Vec<RequestedFile>,
    /// A person or a client decided about a change, or a call had an effect that is not known.
    was_decided: bool,
    /// A person or a rule denied a call.
    was_denied: bool,
    /// The number of times that the model was asked for each file.
    asked_again: HashMap<String, u32>,
}

impl UnchangedFiles {
    /// `request` is what the user wrote. `change_expected` says that it clearly asks for a change of files, and that the run
    /// has the tools for it. Files that are to be gone or executable count in any case: a model that can run no command has to
    /// fail.
    pub(super) fn new(request: &str, change_expected: bool) -> Self {
        let mut requested = if change_expected { requested_files(request) } else { Vec::new() };
        requested.extend(files_for_command(request));
        Self { requested, ..Self::default() }
    }

    /// Notes a call about which more cannot be asked of the model: it was denied, or its effect is not known.
    pub(super) fn note_decision(&mut self) {
        self.was_decided = true;
    }

    /// Notes a call that was denied: the user does not want it.
    pub(super) fn note_denial(&mut self) {
        self.was_denied = true;
    }

    /// Returns the files of the request that are none of those that the run has changed, and those that are to be gone or
    /// executable. A changed file of the same name in another directory counts, because the request may have the wrong
    /// directory.
    pub(super) fn wanted(&self, changed: &[String]) -> Vec<RequestedFile> {
        let is_changed =
            |file: &RequestedFile| changed.iter().any(|path| file_name(path) == file_name(&file.path));
        let is_open = |file: &&RequestedFile| match file.aim {
            FileAim::Changed | FileAim::Created => !self.was_decided && !is_changed(file),
            FileAim::Gone | FileAim::Executable => !self.was_denied,
        };
        self.requested.iter().filter(is_open).cloned().collect()
    }

    /// Judges an answer after which this file is as it was.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked for this file too often.
    pub(super) fn check(&mut self, file: &RequestedFile) -> Result<AnswerCheck, RunError> {
        let RequestedFile { path, aim, clause } = file;
        let fact = match aim {
            FileAim::Created => format!("{path} was to be created and does not exist"),
            FileAim::Changed => format!("{path} was to be changed and is as it was"),
            FileAim::Gone => format!("{path} was to be removed and is still there"),
            FileAim::Executable => format!("{path} was to be executable and is not"),
        };
        let way = if aim.needs_command() { " with run_command" } else { "" };
        let times = self.asked_again.entry(path.clone()).or_default();
        if *times == MAX_ASKED_AGAIN {
            return Err(RunError::new(FailureKind::Model, fact)
                .hint(hint("ask for one file at a time, or use a larger model (`kontekst models`)")));
        }
        *times += 1;
        Ok(AnswerCheck::AskAgain {
            message: format!("The request is not done: {fact}. Do this now{way}: {clause}"),
            fact,
            must_call: true,
        })
    }
}
