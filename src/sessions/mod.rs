//! The conversations on disk: `sessions/<id>.jsonl`, one record a line, and `<id>.meta.json`.
//!
//! What is promised: a record that [`SessionLog::append`] accepted is on disk; one that was torn by a
//! crash costs itself and no other; what cannot be read is counted, never dropped silently.

mod backward;
mod feedback;
mod history_repair;
mod log;
mod meta;
mod record;
mod tail;
mod transcript;

#[cfg(test)]
mod tests;

pub use feedback::Feedback;
pub use log::SessionLog;
pub use record::Record;
pub use tail::{Tail, summary_messages};
pub use transcript::{Entries, Entry, Transcript};

use std::{fs, io, path::PathBuf, time::SystemTime};

use crate::{
    config::{
        Home, PathContext, PathError,
        file::{read_text, sync_dir_of},
        write_hint,
    },
    core::{Name, SessionId},
};

/// All sessions of one data directory. Cheap to make and to clone; holds nothing open.
#[derive(Clone, Debug)]
pub struct Sessions {
    dir: PathBuf,
    active_file: PathBuf,
    /// What model servers have made of them.
    kv_dir: PathBuf,
}

/// What a listing shows of a session. Taken from the directory; no conversation is opened for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub id: SessionId,
    pub default_agent: Option<Name>,
    /// The session whose run started this one as a worker.
    pub parent: Option<SessionId>,
    pub bytes: u64,
    pub modified: SystemTime,
    pub active: bool,
}

/// Why a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A run, here or in another process, has the session open.
    #[error("session `{0}` is in use")]
    Busy(SessionId),
    #[error("no session `{0}`")]
    NotFound(String),
    /// A shortened id that fits several sessions.
    #[error("`{text}` is the start of {} session ids", ids.len())]
    Ambiguous { text: String, ids: Vec<SessionId> },
    /// Deleting the active session needs force.
    #[error("session `{0}` is the active one")]
    Active(SessionId),
    /// One record is longer than a reader accepts. Nothing was written.
    #[error("a record of {bytes} bytes is too long for a session, the limit is {}", record::MAX_LINE)]
    TooLong { bytes: usize },
    /// The record is not in the file, which is as it was.
    #[error("session `{id}` was not extended")]
    Append {
        id: SessionId,
        #[source]
        source: io::Error,
    },
    /// The system could not say that a record is on disk. Final: asking again would get a false yes.
    #[error("session `{id}` is read-only since a write failed")]
    ReadOnly {
        id: SessionId,
        #[source]
        source: Option<io::Error>,
    },
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Sessions {
    pub fn new(home: &Home) -> Self {
        Self { dir: home.sessions(), active_file: home.active_session(), kv_dir: home.kv() }
    }

    pub fn exists(&self, id: &SessionId) -> bool {
        fs::symlink_metadata(self.path(id)).is_ok_and(|meta| meta.is_file())
    }

    /// Opens a session for one run, making it if there is none, and repairs its end.
    ///
    /// Bytes after the last newline are what a crash tore off: they are moved to `<id>.torn-<unix ms>`
    /// unless they are a whole record that lacks only its newline.
    ///
    /// # Errors
    ///
    /// [`SessionError::Busy`] while another [`SessionLog`] of this session lives, in any process.
    pub fn open(&self, id: &SessionId) -> Result<SessionLog, SessionError> {
        SessionLog::open(self.path(id), id.clone())
    }

    /// All sessions, the one written last first.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read. A missing directory has no sessions.
    pub fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(PathError::new(&self.dir, error).into()),
        };
        let active = self.active();
        let mut sessions = Vec::new();
        for entry in entries {
            let entry = entry.context(&self.dir)?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            let Some(id) = id.and_then(|id| id.parse::<SessionId>().ok()) else { continue };
            // Not followed, as when it is opened. Gone by now: deleted while we looked.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_file() {
                sessions.push(SessionSummary {
                    default_agent: self.default_agent(&id),
                    parent: self.parent(&id),
                    bytes: meta.len(),
                    modified: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    active: active.as_ref() == Some(&id),
                    id,
                });
            }
        }
        sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.id.cmp(&a.id)));
        Ok(sessions)
    }

    /// The session that `text` names: an id, the unique start of one, or `last` for the newest that is no
    /// worker's.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`] and [`SessionError::Ambiguous`].
    pub fn resolve(&self, text: &str) -> Result<SessionId, SessionError> {
        if let Ok(id) = text.parse()
            && self.exists(&id)
        {
            return Ok(id);
        }
        let sessions = self.list()?;
        // The start of a name may be shown, never all of what was typed: it can be megabytes.
        let shown = || text.chars().take(128).collect();
        if text == "last" {
            let newest = sessions.into_iter().find(|session| session.parent.is_none());
            return newest.map(|session| session.id).ok_or_else(|| SessionError::NotFound(shown()));
        }
        let ids = sessions.into_iter().map(|session| session.id);
        let mut ids: Vec<SessionId> =
            ids.filter(|id| !text.is_empty() && id.as_str().starts_with(text)).collect();
        match ids.len() {
            0 => Err(SessionError::NotFound(shown())),
            1 => Ok(ids.remove(0)),
            _ => Err(SessionError::Ambiguous { text: shown(), ids }),
        }
    }

    /// Reads a conversation from its start, one record at a time. Takes no lock.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`].
    pub fn entries(&self, id: &SessionId) -> Result<Entries, SessionError> {
        Entries::open(&self.path(id), id)
    }

    /// Reads a whole conversation into memory.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`].
    pub fn transcript(&self, id: &SessionId) -> Result<Transcript, SessionError> {
        let mut transcript = Transcript::default();
        for entry in self.entries(id)? {
            match entry? {
                Entry::Message(message) => transcript.messages.push(message),
                Entry::Damaged { line } => transcript.damaged.push(line),
            }
        }
        Ok(transcript)
    }

    /// Removes a conversation, its metadata and what was torn off it.
    ///
    /// # Errors
    ///
    /// [`SessionError::Active`] for the active session without `force`; with it, no session is active
    /// afterwards. [`SessionError::Busy`] while a run has it open, force or not.
    pub fn delete(&self, id: &SessionId, force: bool) -> Result<(), SessionError> {
        if !self.exists(id) {
            return Err(SessionError::NotFound(id.to_string()));
        }
        let active = self.active().as_ref() == Some(id);
        if active && !force {
            return Err(SessionError::Active(id.clone()));
        }
        let path = self.path(id);
        let _held = log::lock_existing(&path, id)?;
        if active {
            remove_if_exists(&self.active_file)?;
        }
        let torn = format!("{id}.torn-");
        for entry in fs::read_dir(&self.dir).context(&self.dir)? {
            let entry = entry.context(&self.dir)?;
            let name = entry.file_name();
            let stamp = name.to_str().and_then(|name| name.strip_prefix(&torn));
            // All digits: `x.torn-1.jsonl` is a session of its own.
            if stamp.is_some_and(|stamp| !stamp.is_empty() && stamp.bytes().all(|b| b.is_ascii_digit())) {
                remove_if_exists(&entry.path())?;
            }
        }
        // An id has no `@`: this is about no other session.
        let kept = format!("{id}@");
        for entry in fs::read_dir(&self.kv_dir).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(&kept)) {
                remove_if_exists(&entry.path())?;
            }
        }
        remove_if_exists(&self.meta_path(id))?;
        // Last, so that what a crash leaves is still listed and can be deleted again.
        remove_if_exists(&path)?;
        sync_dir_of(&path)?;
        Ok(())
    }

    /// The session that the next run continues. None when there is none or its name is unreadable.
    pub fn active(&self) -> Option<SessionId> {
        read_text(&self.active_file, 1024).ok()?.trim().parse().ok()
    }

    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn set_active(&self, id: &SessionId) -> Result<(), SessionError> {
        Ok(write_hint(&self.active_file, id.as_str().as_bytes())?)
    }

    fn path(&self, id: &SessionId) -> PathBuf {
        self.dir.join(format!("{id}.jsonl"))
    }

    fn meta_path(&self, id: &SessionId) -> PathBuf {
        self.dir.join(format!("{id}.meta.json"))
    }
}

/// Removes a file; that it is gone already is fine.
fn remove_if_exists(path: &std::path::Path) -> Result<(), PathError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.context(path),
    }
}
