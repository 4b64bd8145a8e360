//! Opening for reading: regular files only, and nothing that hangs.

use std::{fs::File, os::fd::OwnedFd};

use rustix::{
    fs::{self, FileType, OFlags, Stat},
    io::Errno,
};

use super::FileError;

/// `NONBLOCK`: a FIFO without a writer must not hang the call. `NOCTTY`: nor may a terminal become ours.
pub(super) const READ_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Takes what was opened if it is a regular file.
pub(super) fn require_regular(fd: OwnedFd, path: &str) -> Result<(File, Stat), FileError> {
    let stat = fs::fstat(&fd).map_err(|errno| FileError::io("read", path, errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(fd), stat)),
        FileType::Directory => Err(FileError::Directory(path.to_owned())),
        _ => Err(FileError::NotARegularFile(path.to_owned())),
    }
}

/// What a failed open means.
pub(super) fn open_error(errno: Errno, path: &str) -> FileError {
    let path = path.to_owned();
    match errno {
        Errno::NOENT => FileError::Missing(path),
        Errno::XDEV => FileError::OutsideWorkspace(path),
        Errno::LOOP => FileError::TooManyLinks(path),
        // A socket, or a device with nothing behind it.
        Errno::NXIO | Errno::NODEV => FileError::NotARegularFile(path),
        errno => FileError::io("open", &path, errno),
    }
}
