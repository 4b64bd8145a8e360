//! A session that one run has open for appending.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use kontekst_core::{Message, SessionId, clock};

use super::{
    Record, SessionError, Tail,
    backward::{Backward, RawLine},
    images::SessionImages,
    record::{MAX_LINE, SessionLine},
    tail,
};

use crate::config::{
    PathContext, PathError,
    file::{sync_dir_of, unfollowed},
    lock::try_lock,
};

/// The time to wait for a directory sync that has begun, before another one is done in its place.
const DIR_SYNC_WAIT: Duration = Duration::from_secs(1);

/// An open session. It holds a lock, so the session cannot be opened a second time, in any process.
#[derive(Debug)]
pub struct SessionLog {
    id: SessionId,
    path: PathBuf,
    /// The file, opened for appending. It holds the lock.
    file: File,
    /// Set after a failed sync or rollback, because the end of the file is unknown from then on.
    read_only: bool,
    dir: DirEntry,
}

/// The entry of a session file in its directory.
#[derive(Debug)]
enum DirEntry {
    OnDisk,
    /// The file is new.
    Unsynced,
    /// The sync has begun on another thread, which sends its result.
    Syncing(mpsc::Receiver<Result<(), PathError>>),
}

impl SessionLog {
    pub(super) fn open(path: PathBuf, id: SessionId) -> Result<Self, SessionError> {
        let (file, new) = lock_or_create(&path, &id)?;
        if file.metadata().context(&path)?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(PermissionsExt::from_mode(0o600)).context(&path)?;
        }
        let dir = if new { DirEntry::Unsynced } else { DirEntry::OnDisk };
        let log = Self { id, path, file, read_only: false, dir };
        log.repair_end()?;
        Ok(log)
    }

    /// Begins to write the directory entry of a new file to disk, on the thread on which `start` runs its argument. Otherwise
    /// the first [`append`](Self::append) does it, and waits for two syncs one after the other, where the first one can be
    /// done while the model reads.
    pub fn begin_dir_sync(&mut self, start: impl FnOnce(Box<dyn FnOnce() + Send>)) {
        if matches!(self.dir, DirEntry::Unsynced) {
            let (sender, result) = mpsc::channel();
            let path = self.path.clone();
            // Nobody receives the result of a run that has failed before it stored anything.
            start(Box::new(move || drop(sender.send(sync_dir_of(&path)))));
            self.dir = DirEntry::Syncing(result);
        }
    }

    /// Appends the records in one write, after the images of the messages. They are on disk when this returns.
    ///
    /// This costs one `write` and one `fdatasync`, about 0.2 ms on an idle disk, and another sync if the file is new. It
    /// should be called once per message and never for single tokens.
    ///
    /// # Errors
    ///
    /// After [`SessionError::Append`], for example because of a full disk, and after
    /// [`SessionError::TooLong`] the file is unchanged and the log can still be used. After
    /// [`SessionError::ReadOnly`] nothing can be appended to this log any more.
    pub fn append(&mut self, records: &[Record<'_>]) -> Result<(), SessionError> {
        for record in records {
            if let Record::Message(message) = record {
                self.images().keep(message)?;
            }
        }
        self.write(records)?;
        self.file.sync_data().map_err(|source| self.make_read_only(source))?;
        self.sync_dir()
    }

    /// Makes sure that the directory entry is on disk.
    fn sync_dir(&mut self) -> Result<(), SessionError> {
        let begun = match &self.dir {
            DirEntry::OnDisk => return Ok(()),
            DirEntry::Unsynced => None,
            // It may still wait for a thread, and each of those may wait here.
            DirEntry::Syncing(result) => result.recv_timeout(DIR_SYNC_WAIT).ok(),
        };
        if !matches!(begun, Some(Ok(()))) {
            sync_dir_of(&self.path)?;
        }
        self.dir = DirEntry::OnDisk;
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
        // This is one write(2), unless the system accepts only a part, for example because the disk is
        // almost full.
        if let Err(source) = self.file.write_all(&lines) {
            return Err(match self.file.set_len(before) {
                Ok(()) => SessionError::Append { id: self.id.clone(), source },
                Err(_) => self.make_read_only(source),
            });
        }
        Ok(())
    }

    /// Loads the newest messages that fit in `budget`, oldest first.
    ///
    /// `budget` is in model tokens. A message costs its stored `tokens`. If there are none, it costs what
    /// `estimate` returns, but at least 1. Reading stops at the first message that does not fit.
    ///
    /// The result can be sent to a model for every budget: it begins with a user message, and a call
    /// without a result gets a placeholder that says what is known. The file is read backwards in blocks,
    /// so the cost depends on the budget and not on the size of the file.
    ///
    /// # Errors
    ///
    /// [`SessionError::Path`] if the file cannot be read. Lines that cannot be parsed are skipped and
    /// counted.
    ///
    /// Source: architecture seed, "Session Persistence".
    pub fn tail(&self, budget: u32, estimate: &dyn Fn(&Message) -> u32) -> Result<Tail, SessionError> {
        let len = self.file.metadata().context(&self.path)?.len();
        let read = |buf: &mut [u8], at| self.file.read_exact_at(buf, at);
        let mut tail = tail::load(len, &read, budget, estimate).context(&self.path)?;
        self.images().load(&mut tail.messages);
        Ok(tail)
    }

    fn images(&self) -> SessionImages<'_> {
        SessionImages { dir: self.path.parent().unwrap_or(Path::new(".")), id: &self.id }
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
            // There is nothing after the last newline, or the file is empty.
            None | Some(RawLine::Whole([])) => return Ok(()),
            Some(RawLine::Whole(bytes)) => {
                matches!(
                    SessionLine::parse(bytes),
                    SessionLine::Message(_)
                        | SessionLine::Unanswered(_)
                        | SessionLine::ToolStarted { .. }
                        | SessionLine::Compacted { .. }
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

    /// Copies the bytes from `start` to `end` into a file of their own, so that no data is lost.
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
    let mut options = unfollowed();
    options.append(true).mode(0o600);
    options
}

/// A run that failed before anything was stored leaves no empty session behind.
impl Drop for SessionLog {
    fn drop(&mut self) {
        let is_empty = || self.file.metadata().is_ok_and(|metadata| metadata.len() == 0);
        if !matches!(self.dir, DirEntry::OnDisk) && is_empty() {
            fs::remove_file(self.path.with_extension("meta.json")).ok();
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Opens and locks a session, which is created if it does not exist. Also returns whether it is new.
fn lock_or_create(path: &Path, id: &SessionId) -> Result<(File, bool), SessionError> {
    let mut new = false;
    loop {
        match lock_existing(path, id) {
            Err(SessionError::NotFound(_)) => {}
            other => return other.map(|file| (file, new)),
        }
        match options().create_new(true).open(path) {
            Ok(_) => new = true,
            // Another thread or process created it first, and its file is just as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(PathError::new(path, error).into()),
        }
    }
}

/// Opens and locks a session that exists.
///
/// # Errors
///
/// [`SessionError::NotFound`], [`SessionError::Busy`], or [`SessionError::Path`].
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
    // If the file was deleted between open and lock, it is no longer the session of this name.
    if file.metadata().context(path)?.nlink() == 0 {
        return Err(SessionError::NotFound(id.to_string()));
    }
    Ok(file)
}
