//! Walks a path one name at a time and never leaves the root, even if files are swapped meanwhile.
//!
//! Each step opens one name relative to a directory handle and refuses links (`O_NOFOLLOW`). The target of
//! a link is read and walked in the same way, and a `..` in it goes back to a handle that is already open.
//! So no step can end above the root, even if a directory is replaced by a link between two steps.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::PathBuf,
};

use rustix::{
    fs::{self, Mode, OFlags, RawMode},
    io::Errno,
};

use super::FileError;

/// The maximum number of links on one path. Source: `MAXSYMLINKS` of Linux.
const MAX_LINKS: u32 = 40;

/// The target of a path after every link has been followed.
pub(super) struct Resolved {
    /// The innermost directory on the path that exists.
    pub(crate) dir: OwnedFd,
    /// The names of the directories between `dir` and the file that do not exist yet, from the outside in.
    pub(crate) missing: Vec<OsString>,
    /// A single name without `/`. It is not `..`, and it was not a link when it was looked at.
    pub(crate) name: OsString,
    /// The path from the root, without links.
    pub(crate) real_path: PathBuf,
}

/// The flags to open a directory only as the starting point of further `*at` calls.
pub(super) const HANDLE: OFlags = {
    #[cfg(target_os = "linux")]
    let only_a_handle = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let only_a_handle = OFlags::RDONLY;
    only_a_handle.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC)
};

/// Follows `path` from `root` to the directory and the name that it leads to.
///
/// # Errors
///
/// [`FileError::OutsideWorkspace`] if a link leads out of the root, and another [`FileError`] if the path
/// cannot be followed.
pub(super) fn resolve(root: BorrowedFd<'_>, path: &str) -> Result<Resolved, FileError> {
    let fail = |errno: Errno| FileError::io("reach", path, errno);
    let outside = || FileError::OutsideWorkspace(path.to_owned());
    let innermost = |entered: &mut Vec<(OwnedFd, OsString)>| match entered.pop() {
        Some((dir, _)) => Ok(dir),
        None => root.try_clone_to_owned().map_err(|error| FileError::io("reach", path, error)),
    };
    let mut entered: Vec<(OwnedFd, OsString)> = Vec::new();
    let mut todo: Vec<OsString> = path.split('/').rev().map(OsString::from).collect();
    let mut links = 0;

    while let Some(name) = todo.pop() {
        if name == ".." {
            entered.pop().ok_or_else(outside)?;
            continue;
        }
        let current_dir = entered.last().map_or(root, |(dir, _)| dir.as_fd());
        match fs::readlinkat(current_dir, &*name, Vec::new()) {
            Ok(target) => {
                links += 1;
                let target = target.into_bytes();
                if target.starts_with(b"/") {
                    return Err(outside());
                }
                if links > MAX_LINKS {
                    return Err(FileError::TooManyLinks(path.to_owned()));
                }
                let parts = target.split(|&b| b == b'/').rev();
                let parts = parts.filter(|part| !part.is_empty() && *part != b".");
                todo.extend(parts.map(|part| OsString::from_vec(part.to_vec())));
            }
            Err(Errno::INVAL | Errno::NOENT) if todo.is_empty() => {
                let real_path = real_path(&entered, std::iter::once(&*name));
                return Ok(Resolved { dir: innermost(&mut entered)?, missing: Vec::new(), name, real_path });
            }
            Err(Errno::INVAL) => entered.push((enter_dir(current_dir, &name).map_err(fail)?, name)),
            Err(Errno::NOENT) => {
                if todo.iter().any(|part| part == "..") {
                    return Err(FileError::Missing(path.to_owned()));
                }
                let rest = std::iter::once(&*name).chain(todo.iter().rev().map(|part| &**part));
                let real_path = real_path(&entered, rest);
                let file = todo.remove(0);
                let missing = std::iter::once(name).chain(todo.into_iter().rev()).collect();
                return Ok(Resolved { dir: innermost(&mut entered)?, missing, name: file, real_path });
            }
            Err(errno) => return Err(fail(errno)),
        }
    }
    Err(FileError::Directory(path.to_owned()))
}

/// Opens one directory. Fails if the name is a link.
pub(super) fn enter_dir(current_dir: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    fs::openat(current_dir, name, HANDLE | OFlags::NOFOLLOW, Mode::empty())
}

/// Creates a directory with the mode that [`new_mode`] returns.
pub(super) fn make_dir(
    current_dir: BorrowedFd<'_>,
    name: &OsStr,
    umask: Option<RawMode>,
) -> rustix::io::Result<()> {
    match fs::mkdirat(current_dir, name, Mode::from_raw_mode(0o700)) {
        Ok(()) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let created = fs::openat(current_dir, name, flags, Mode::empty())?;
            let mode = fs::fstat(&created)?.st_mode | new_mode(current_dir, 0o777, umask);
            fs::fchmod(created, Mode::from_raw_mode(mode))
        }
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Returns the mode of a new file in `dir`: `most`, without the bits of the umask. Where no caller has said its umask, group and
/// others do not write, and do not get what the directory denies them.
pub(super) fn new_mode(dir: BorrowedFd<'_>, most: RawMode, umask: Option<RawMode>) -> RawMode {
    umask.map_or_else(|| most & 0o755 & !umask_of(dir), |umask| most & !umask)
}

/// Returns the mode bits that a new file in `dir` must not have: those that the directory itself denies
/// to group and others.
///
/// The daemon's own umask cannot be used. It is 077, to protect the daemon's own files.
pub(super) fn umask_of(dir: BorrowedFd<'_>) -> RawMode {
    fs::fstat(dir).map_or(0o077, |stat| !stat.st_mode & 0o077)
}

fn real_path<'a>(entered: &'a [(OwnedFd, OsString)], rest: impl Iterator<Item = &'a OsStr>) -> PathBuf {
    entered.iter().map(|(_, name)| &**name).chain(rest).collect()
}
