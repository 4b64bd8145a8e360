//! What the workers of a run do, on disk: `teams/<id>.jsonl`, one [`TeamEvent`] a line.
//!
//! A team is a session that a client runs and all workers that its runs start, theirs included; its id is that
//! session's. What is promised: an event is on disk before anybody hears of it; a watcher hears all events of
//! the log and then those that come, each once and in order; a worker that the daemon did not survive is
//! `Interrupted` when its log is opened again.

mod cursor;
mod event;
mod log;
mod summary;

#[cfg(test)]
mod tests;

pub use cursor::Cursor;
pub use event::{FailureCause, SubagentEvent, SubagentEventKind, SubagentExit};
pub use log::SubagentLog;
pub use summary::{SubagentSummary, summarize};

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{
    config::{Home, HomeError, PathContext, PathError},
    core::SessionId,
};

/// Why a team's log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SubagentLogError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Path(#[from] PathError),
    /// The system could not say that an event is on disk. Final for this log.
    #[error("the log of the team `{0}` is read-only since a write failed")]
    ReadOnly(SessionId),
}

/// The teams of one data directory, each open at most once.
#[derive(Debug)]
pub struct SubagentLogs {
    home: Home,
    open: Mutex<HashMap<SessionId, Weak<SubagentLog>>>,
}

impl SubagentLogs {
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone(), open: Mutex::default() }
    }

    /// Whether there is a log.
    pub fn exists(&self, id: &SessionId) -> bool {
        fs::symlink_metadata(self.path(id)).is_ok_and(|meta| meta.is_file())
    }

    /// The team, for writing and for watching. Only the daemon may: it is what makes of a worker without an
    /// end one that was interrupted. No file is made before the first event.
    ///
    /// # Errors
    ///
    /// [`TeamError::Path`] when the log cannot be read.
    pub fn open(&self, id: &SessionId) -> Result<Arc<SubagentLog>, SubagentLogError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(team) = open.get(id).and_then(Weak::upgrade) {
            return Ok(team);
        }
        open.retain(|_, team| team.strong_count() > 0);
        let team = Arc::new(SubagentLog::open(&self.home, self.path(id), id.clone())?);
        open.insert(id.clone(), Arc::downgrade(&team));
        Ok(team)
    }

    /// What the log says, for any process. Workers without an end are `Interrupted` unless a daemon has the
    /// log open.
    ///
    /// # Errors
    ///
    /// [`TeamError::Path`]. No log is no error.
    pub fn read(&self, id: &SessionId) -> Result<Vec<SubagentEvent>, SubagentLogError> {
        log::read(&self.path(id))
    }

    /// Removes the log.
    ///
    /// # Errors
    ///
    /// [`TeamError::Path`]; that there is none is fine.
    pub fn delete(&self, id: &SessionId) -> Result<(), SubagentLogError> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context(path)?,
            _ => Ok(()),
        }
    }

    fn path(&self, id: &SessionId) -> PathBuf {
        self.home.teams().join(format!("{id}.jsonl"))
    }
}
