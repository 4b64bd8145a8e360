//! A file that a tool may replace. It is read as a whole and replaced atomically.

use std::{
    ffi::OsString,
    fs::File,
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{self, AtFlags, Mode, OFlags, RawMode, Stat},
    io::Errno,
};
use uuid::Uuid;

use super::{
    FileError, read,
    resolve::{Resolved, umask_of},
};

/// The target of a write: an open directory and one name in it, after every link has been followed.
pub struct WriteTarget {
    dir: Option<OwnedFd>,
    name: OsString,
    real_path: String,
    /// The path as the model gave it, for messages.
    given_path: String,
}

/// The content and the identity of a file at the time when it was read.
pub struct ExistingFile {
    pub content: Vec<u8>,
    stat: Stat,
}

impl ExistingFile {
    /// Returns the number of names (hard links) of the file. A write replaces only the given name.
    pub fn link_count(&self) -> u64 {
        #[allow(clippy::useless_conversion, reason = "u32 or u64, depending on the architecture")]
        self.stat.st_nlink.into()
    }

    pub fn is_owned_by_daemon_user(&self) -> bool {
        self.stat.st_uid == rustix::process::geteuid().as_raw()
    }
}

impl WriteTarget {
    pub(super) fn new(resolved: Resolved, given_path: &str) -> Self {
        Self {
            dir: resolved.dir,
            name: resolved.name,
            real_path: resolved.real_path,
            given_path: given_path.to_owned(),
        }
    }

    /// Returns the path from the root of the workspace, without links.
    pub fn real_path(&self) -> &str {
        &self.real_path
    }

    /// Returns true if the directory that the file is in exists.
    pub fn has_parent_dir(&self) -> bool {
        self.dir.is_some()
    }

    /// Reads the file, or returns `None` if it does not exist yet.
    ///
    /// # Errors
    ///
    /// [`FileError::Directory`], [`FileError::NotARegularFile`], and [`FileError::TooLarge`] for a file of
    /// more than `limit` bytes. The size is checked before anything is read.
    pub fn read_existing(&self, limit: u64) -> Result<Option<ExistingFile>, FileError> {
        let Some(dir) = &self.dir else { return Ok(None) };
        let flags = read::READ_FLAGS | OFlags::NOFOLLOW;
        let (file, stat) = match fs::openat(dir, &*self.name, flags, Mode::empty()) {
            Ok(fd) => read::require_regular(fd, &self.given_path)?,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(read::open_error(errno, &self.given_path)),
        };
        let too_large = |bytes| FileError::TooLarge { path: self.given_path.clone(), bytes, limit };
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size > limit {
            return Err(too_large(size));
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // One byte more than the limit is read, to notice a file that grows meanwhile.
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut content);
        read.map_err(|error| FileError::io("read", &self.given_path, error))?;
        if content.len() as u64 > limit {
            return Err(too_large(content.len() as u64));
        }
        Ok(Some(ExistingFile { content, stat }))
    }

    /// Replaces the file `old` by `content`, or creates a new file if `old` is `None`.
    ///
    /// The content is written to a temporary file in the same directory, synced and renamed, so that a
    /// crash leaves either the old file or the new one. Other names of the old file (hard links) keep the
    /// old content.
    ///
    /// # Errors
    ///
    /// [`FileError::Stale`] if the file of this name is no longer `old`.
    pub fn replace(&self, content: &[u8], old: Option<&ExistingFile>) -> Result<(), FileError> {
        let Some(dir) = &self.dir else { return Err(FileError::Missing(self.given_path.clone())) };
        let mode = match old {
            Some(old) if old.stat.st_mode & 0o200 == 0 => {
                return Err(FileError::ReadOnly(self.given_path.clone()));
            }
            Some(old) => old.stat.st_mode & 0o777,
            None => 0o644 & !umask_of(dir.as_fd()),
        };
        let temp_name = format!(".kontekst-{}.tmp", Uuid::new_v4().simple());
        let written = self.write_and_rename(dir, &temp_name, content, mode, old);
        if written.is_err() {
            let _ = fs::unlinkat(dir, &temp_name, AtFlags::empty()); // the first error is returned
        }
        written
    }

    fn write_and_rename(
        &self,
        dir: &OwnedFd,
        temp_name: &str,
        content: &[u8],
        mode: RawMode,
        old: Option<&ExistingFile>,
    ) -> Result<(), FileError> {
        let fail = |error: std::io::Error| FileError::io("write", &self.given_path, error);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat(dir, temp_name, flags, Mode::from_raw_mode(0o600)).map_err(|e| fail(e.into()))?;
        let mut file = File::from(fd);
        file.write_all(content).map_err(fail)?;
        fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(|e| fail(e.into()))?;
        file.sync_all().map_err(fail)?;
        match old {
            Some(old) => {
                self.check_unchanged(dir, old)?;
                fs::renameat(dir, temp_name, dir, &*self.name).map_err(|e| fail(e.into()))?;
            }
            None => self.link_unless_exists(dir, temp_name)?,
        }
        // `dir` may be opened with `O_PATH`, and such a handle cannot be synced.
        let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        fs::openat(dir, ".", open, Mode::empty()).and_then(fs::fsync).map_err(|e| fail(e.into()))
    }

    /// Checks right before the rename that the file is still `old`. The content was compared earlier; a
    /// later change shows in the metadata.
    fn check_unchanged(&self, dir: &OwnedFd, old: &ExistingFile) -> Result<(), FileError> {
        let identity = |s: &Stat| (s.st_dev, s.st_ino, s.st_size, s.st_mtime, s.st_mtime_nsec);
        match fs::statat(dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) if identity(&now) == identity(&old.stat) => Ok(()),
            _ => Err(FileError::Stale(self.given_path.clone())),
        }
    }

    /// Gives the temporary file its final name, unless a file of that name has appeared meanwhile.
    fn link_unless_exists(&self, dir: &OwnedFd, temp_name: &str) -> Result<(), FileError> {
        // `linkat` fails if the name exists, on every file system that supports hard links.
        match fs::linkat(dir, temp_name, dir, &*self.name, AtFlags::empty()) {
            Ok(()) => {
                let _ = fs::unlinkat(dir, temp_name, AtFlags::empty()); // the file has its final name already
                Ok(())
            }
            Err(Errno::EXIST) => Err(FileError::Stale(self.given_path.clone())),
            Err(_) if fs::statat(dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW).is_ok() => {
                Err(FileError::Stale(self.given_path.clone()))
            }
            Err(_) => fs::renameat(dir, temp_name, dir, &*self.name)
                .map_err(|errno| FileError::io("write", &self.given_path, errno)),
        }
    }
}
