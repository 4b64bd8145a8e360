//! Turns back a change of a file of which the request does not speak, once each file is changed that it names. Small models go
//! on when they are done.
//!
//! The request may need that change all the same, so a model that makes it again gets its way.

use std::collections::HashSet;

use super::{
    TurnedBack,
    change_request::{
        FileAim, RequestedFile, file_name, files_for_command, mentions_file, names_all_files, requested_files,
    },
};
use crate::tools::Change;

/// Judges the changes of a run.
#[derive(Default)]
pub(super) struct OtherFiles {
    request: String,
    /// The files that the request names. Empty if it may mean more of them.
    requested: Vec<RequestedFile>,
    /// The files of which a change was turned back.
    turned_back: HashSet<String>,
}

impl OtherFiles {
    /// `request` is what the user wrote.
    pub(super) fn new(request: &str) -> Self {
        let mut requested = Vec::new();
        if names_all_files(request) {
            requested = [requested_files(request), files_for_command(request)].concat();
        }
        Self { request: request.to_owned(), requested, turned_back: HashSet::new() }
    }

    /// Judges a change. `changed` are the files that the run has changed.
    pub(super) fn judge(&mut self, change: &Change, changed: &[String]) -> Option<TurnedBack> {
        let path = &change.path;
        change.old.as_ref()?;
        let is_changed =
            |file: &RequestedFile| changed.iter().any(|changed| file_name(changed) == file_name(&file.path));
        let is_done = |file: &RequestedFile| match file.aim {
            FileAim::Changed | FileAim::Created => is_changed(file),
            // Nobody changes another file for this.
            FileAim::Gone | FileAim::Executable => true,
        };
        let is_other = !self.requested.is_empty()
            && self.requested.iter().all(is_done)
            && !changed.contains(path)
            && !mentions_file(&self.request, path);
        (is_other && self.turned_back.insert(path.clone())).then(|| TurnedBack {
            fact: format!("Nothing was changed: the request does not speak of {path}."),
            advice: Some(
                "If what it speaks of is done, answer now. If it needs this change, make this call again."
                    .to_owned(),
            ),
        })
    }

    /// Returns true if a change of this file was turned back. `path` is as a call has it.
    pub(super) fn has_turned_back(&self, path: &str) -> bool {
        self.turned_back.contains(path.trim_start_matches("./"))
    }
}
