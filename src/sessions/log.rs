//! A session that one run has open: locked, repaired, and appended to.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{
    Record, SessionError, Tail,
    backward::{Backward, RawLine},
    record::{MAX_LINE, SessionLine},
    tail,
};
use crate::{
    config::{PathContext, PathError, file::sync_dir_of, lock::try_lock},
    core::{Message, SessionId, clock},
};

/// An open session. While it lives, nobody else can open the same one.
#[derive(Debug)]
pub struct SessionLog {
    id: SessionId,
    path: PathBuf,
    /// Opened for appending; the lock is on it and goes with it.
    file: File,
    /// A failed sync or rollback: the file may end in anything.
    read_only: bool,
    /// The file is new and its directory does not know it for certain yet.
    needs_dir_sync: bool,
}

impl SessionLog {
    pub(super) fn open(path: PathBuf, id: SessionId) -> Result<Self, SessionError> {
        let (file, new) = lock_or_create(&path, &id)?;
        if file.metadata().context(&path)?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(PermissionsExt::from_mode(0o600)).context(&path)?;
        }
        let log = Self { id, path, file, read_only: false, needs_dir_sync: new };
        log.repair_end()?;
        Ok(log)
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Writes the records in one piece. They are on disk when this returns.
    ///
    /// Costs one `write` and one `fdatasync`, 0.2 ms on an idle disk, so it belongs after a message,
    /// never between tokens.
    ///
    /// # Errors
    ///
    /// After [`SessionError::Append`] (a full disk) and [`SessionError::TooLong`] the file is as before
    /// and the log can be used. [`SessionError::ReadOnly`] is final for this log.
    pub fn append(&mut self, records: &[Record<'_>]) -> Result<(), SessionError> {
        self.write(records)?;
        self.file.sync_data().map_err(|source| self.make_read_only(source))?;
        if self.needs_dir_sync {
            sync_dir_of(&self.path)?;
            self.needs_dir_sync = false;
        }
        Ok(())
    }

    fn write(&mut self, records: &[Record<'_>]) -> Result<(), SessionError> {
        if self.read_only {
            return Err(SessionError::ReadOnly { id: self.id.clone(), source: None });
        }
        let mut lines = Vec::new();
        for record in records {
            record.write(&mut lines)?;
        }
        let before = self.file.metadata().context(&self.path)?.len();
        // One write(2) unless the system takes only a part, as on a disk that fills up.
        if let Err(source) = self.file.write_all(&lines) {
            return Err(match self.file.set_len(before) {
                Ok(()) => SessionError::Append { id: self.id.clone(), source },
                Err(_) => self.make_read_only(source),
            });
        }
        Ok(())
    }

    /// Loads the newest messages that fit in `budget`, oldest first, fit to be sent to a model.
    ///
    /// `budget` is in model tokens; a message costs its stored `tokens`, else what `estimate` says, at
    /// least 1. Reading stops at the first message that does not fit. Then the start moves up to a user
    /// message, and calls without results get one that says what is known, so that every budget gives
    /// a valid conversation. The file is read backwards in blocks: the cost follows the budget.
    ///
    /// # Errors
    ///
    /// Only when the file cannot be read. What cannot be understood is skipped and counted.
    ///
    /// Source: architecture seed, "Session Persistence".
    pub fn tail(&self, budget: u32, estimate: &dyn Fn(&Message) -> u32) -> Result<Tail, SessionError> {
        let len = self.file.metadata().context(&self.path)?.len();
        let read = |buf: &mut [u8], at| self.file.read_exact_at(buf, at);
        Ok(tail::load(len, &read, budget, estimate).context(&self.path)?)
    }

    fn make_read_only(&mut self, source: io::Error) -> SessionError {
        self.read_only = true;
        SessionError::ReadOnly { id: self.id.clone(), source: Some(source) }
    }

    fn repair_end(&self) -> Result<(), SessionError> {
        let len = self.file.metadata().context(&self.path)?.len();
        let read = |buf: &mut [u8], at| self.file.read_exact_at(buf, at);
        let mut lines = Backward::new(len, &read, MAX_LINE);
        let whole = match lines.next().context(&self.path)? {
            // Nothing after the last newline, or nothing at all.
            None | Some(RawLine::Whole([])) => return Ok(()),
            Some(RawLine::Whole(bytes)) => {
                matches!(
                    SessionLine::parse(bytes),
                    SessionLine::Message(_) | SessionLine::ToolStarted(_) | SessionLine::Compacted { .. }
                )
            }
            Some(RawLine::TooLong { .. }) => false,
        };
        let start = lines.position();
        if whole {
            (&self.file).write_all(b"\n").context(&self.path)?;
        } else {
            self.move_torn_bytes(start, len)?;
            self.file.set_len(start).context(&self.path)?;
        }
        Ok(self.file.sync_data().context(&self.path)?)
    }

    /// Copies the bytes from `start` to `end` into a file of their own: evidence is not thrown away.
    fn move_torn_bytes(&self, start: u64, end: u64) -> Result<(), PathError> {
        let (path, mut torn) = self.create_torn_file()?;
        let mut block = vec![0; 64 * 1024];
        let mut at = start;
        while at < end {
            let size = block.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            self.file.read_exact_at(&mut block[..size], at).context(&self.path)?;
            torn.write_all(&block[..size]).context(&path)?;
            at += size as u64;
        }
        torn.sync_all().context(&path)?;
        sync_dir_of(&path)
    }

    fn create_torn_file(&self) -> Result<(PathBuf, File), PathError> {
        let mut stamp = clock::unix_millis();
        loop {
            let path = self.path.with_file_name(format!("{}.torn-{stamp}", self.id));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => stamp += 1,
                opened => return opened.context(&path).map(|file| (path, file)),
            }
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // A session is a regular file in its directory: links are not followed, a FIFO is not waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    options.read(true).append(true).mode(0o600).custom_flags(flags);
    options
}

/// The file, and whether it is new.
fn lock_or_create(path: &Path, id: &SessionId) -> Result<(File, bool), SessionError> {
    let mut new = false;
    loop {
        match lock_existing(path, id) {
            Err(SessionError::NotFound(_)) => {}
            other => return other.map(|file| (file, new)),
        }
        match options().create_new(true).open(path) {
            Ok(_) => new = true,
            // Somebody was faster; theirs is as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(PathError::new(path, error).into()),
        }
    }
}

/// Opens and locks a session that exists.
pub(super) fn lock_existing(path: &Path, id: &SessionId) -> Result<File, SessionError> {
    let file = match options().open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(SessionError::NotFound(id.to_string()));
        }
        Err(error) => return Err(PathError::new(path, error).into()),
    };
    let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    if !file.metadata().context(path)?.is_file() {
        return Err(PathError::new(path, not_regular()).into());
    }
    if !try_lock(&file).context(path)? {
        return Err(SessionError::Busy(id.clone()));
    }
    // Deleted between open and lock: what we hold is no longer the session of this name.
    if file.metadata().context(path)?.nlink() == 0 {
        return Err(SessionError::NotFound(id.to_string()));
    }
    Ok(file)
}
