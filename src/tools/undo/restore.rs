//! Carries out a plan.

use std::path::{Path, PathBuf};

use super::{PlannedFile, UndoPlan, UndoStep, look};
use crate::{
    journal::{FileState, Journal, NewChange},
    tools::{
        FileError, WorkDir, Workspace,
        workspace::{Found, Place, PlaceError, Record},
    },
};

/// The result for one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub path: PathBuf,
    pub result: RestoreResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreResult {
    Done,
    /// A directory stays, because it has other files in it.
    Kept,
    /// It stays as it is, for this reason.
    Refused(String),
}

/// One step, and what has to be there before it.
struct Step<'a> {
    path: &'a Path,
    now: FileState,
    to: &'a FileState,
}

impl UndoPlan {
    /// Restores what the plan says and reports each path to `report`. `work_dir` records it.
    ///
    /// First everything is removed that has to go, from the inside out, and then the rest is made, from the outside in. A
    /// path that has changed since the plan was made is refused.
    pub fn carry_out(&self, work_dir: &WorkDir, journal: &Journal, report: &mut dyn FnMut(Restored)) {
        let mut removals = Vec::new();
        let mut others = Vec::new();
        for PlannedFile { path, step } in &self.files {
            match step {
                UndoStep::Refuse(reason) => {
                    report(Restored { path: path.clone(), result: RestoreResult::Refused(reason.clone()) });
                }
                UndoStep::Restore { now, to: FileState::Missing, .. } => {
                    removals.push(Step { path, now: now.clone(), to: &FileState::Missing });
                }
                UndoStep::Restore { now: now @ FileState::Dir { .. }, to, .. }
                    if !matches!(to, FileState::Dir { .. }) =>
                {
                    removals.push(Step { path, now: now.clone(), to: &FileState::Missing });
                    others.push(Step { path, now: FileState::Missing, to });
                }
                UndoStep::Restore { now, to, .. } => others.push(Step { path, now: now.clone(), to }),
            }
        }
        for step in removals.into_iter().rev().chain(others) {
            let result = step.carry_out(work_dir, journal);
            report(Restored { path: step.path.to_owned(), result });
        }
    }
}

impl Step<'_> {
    fn carry_out(&self, work_dir: &WorkDir, journal: &Journal) -> RestoreResult {
        // The sandbox opens nothing in the data directory, so the content is read before.
        let content = match self.to {
            FileState::File { sha256, bytes, .. } if !self.to.is_same_content(&self.now) => {
                match journal.contents().read(*sha256, *bytes) {
                    Ok(content) => Some(content),
                    Err(error) => return RestoreResult::Refused(error.to_string()),
                }
            }
            _ => None,
        };
        let limit = journal.max_file_bytes();
        let restored = work_dir.restore_sandboxed(|workspace, record| {
            self.restore(workspace, record, content.as_deref(), limit)
        });
        match restored {
            Ok(()) => RestoreResult::Done,
            Err(RestoreError::Place(PlaceError::NotEmpty)) => RestoreResult::Kept,
            Err(error) => RestoreResult::Refused(error.to_string()),
        }
    }

    fn restore(
        &self,
        workspace: &Workspace,
        record: Record<'_>,
        content: Option<&[u8]>,
        limit: u64,
    ) -> Result<(), RestoreError> {
        let found = look(workspace, self.path, limit)?;
        if found.state != self.now {
            return Err(PlaceError::Changed.into());
        }
        let Some(place) = workspace.place(self.path)? else { return Err(RestoreError::NoDirectory) };
        if matches!(found.state, FileState::Dir { .. })
            && *self.to == FileState::Missing
            && !place.is_empty_dir()?
        {
            return Err(PlaceError::NotEmpty.into());
        }
        record(vec![self.change(&found)])?;
        Ok(self.make(&place, &found, content)?)
    }

    fn change(&self, found: &Found) -> NewChange {
        let is_file = matches!(found.state, FileState::File { .. });
        NewChange {
            content: found.content.clone(),
            not_kept: is_file && found.content.is_none(),
            ..NewChange::of(self.path.to_owned(), found.state.clone(), self.to.clone())
        }
    }

    fn make(&self, place: &Place, found: &Found, content: Option<&[u8]>) -> Result<(), PlaceError> {
        match self.to {
            FileState::Missing => place.remove(found),
            FileState::File { mode, .. } => match content {
                Some(content) => place.write(found, content, *mode),
                None => place.set_mode(found, *mode),
            },
            FileState::Link { target } => place.link(found, target),
            FileState::Dir { mode } => match found.state {
                FileState::Dir { .. } => place.set_mode(found, *mode),
                FileState::Missing => place.make_dir(*mode),
                _ => place.remove(found).and_then(|()| place.make_dir(*mode)),
            },
            FileState::Other => Err(PlaceError::Special),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum RestoreError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("{}", .0.message())]
    Record(#[from] FileError),
    #[error("the directory that it was in is gone")]
    NoDirectory,
}
