//! Looks at every entry of a tree, and reads none.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::Limits;
use crate::{
    journal::FileStamp,
    tools::{Workspace, gitignore::IgnoreRules},
};

/// The deepest directory that is looked into. Each level holds an open handle.
const MAX_DEPTH: usize = 64;
/// Directories that are left out by their names. What is in them is made again, or belongs to git.
const LEFT_OUT: [&str; 7] =
    [".git", "node_modules", "target", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"];

/// A tree at one moment.
#[derive(Debug, Default)]
pub(in crate::tools) struct Scan {
    pub(super) entries: BTreeMap<PathBuf, Seen>,
    /// The directories that were left out, with the numbers by which the file system knows them.
    pub(super) left_out: BTreeMap<PathBuf, u64>,
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) state: Kind,
    pub(super) mode: u32,
    pub(super) stamp: FileStamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Link(PathBuf),
    Dir,
    Other,
}

/// There are too many entries.
#[derive(Debug)]
pub(super) struct TooMany;

/// Looks at the tree. Links are not followed.
pub(super) fn scan(workspace: &Workspace, limits: Limits) -> Result<Scan, TooMany> {
    let mut walk = Walk { workspace, limits, scan: Scan::default() };
    if let Ok(root) = workspace.open_dir("") {
        walk.directory(&root, Path::new(""), 0, workspace.outer_rules())?;
    }
    Ok(walk.scan)
}

impl Scan {
    /// Returns the files whose contents are not kept: those that are too large, and from the one on with which all together
    /// are.
    pub(super) fn over(&self, limits: Limits) -> impl Iterator<Item = (&PathBuf, &Seen)> {
        let mut left = limits.bytes;
        self.entries.iter().filter(move |(_, seen)| {
            if seen.state != Kind::File {
                return false;
            }
            let fits = seen.stamp.bytes <= limits.file_bytes.min(left);
            left -= if fits { seen.stamp.bytes } else { 0 };
            !fits
        })
    }
}

struct Walk<'a> {
    workspace: &'a Workspace,
    limits: Limits,
    scan: Scan,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        dir: &OwnedFd,
        path: &Path,
        depth: usize,
        rules: &IgnoreRules,
    ) -> Result<(), TooMany> {
        let rules = rules.with_file_in(&path.to_string_lossy(), self.workspace);
        // A directory that cannot be read has nothing that a command of this user changes.
        let Ok(listing) = Dir::read_from(dir) else { return Ok(()) };
        for entry in listing.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let path = path.join(name);
            let Some((seen, is_dir)) = look(dir, name) else { continue };
            if is_dir
                && (is_left_out(name)
                    || depth >= MAX_DEPTH
                    || rules.is_ignored(&path.to_string_lossy(), true))
            {
                self.scan.left_out.insert(path, seen.stamp.inode);
                continue;
            }
            if self.scan.entries.len() >= self.limits.entries {
                return Err(TooMany);
            }
            self.scan.entries.insert(path.clone(), seen);
            if is_dir {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if let Ok(inner) = fs::openat(dir, name, flags, Mode::empty()) {
                    self.directory(&inner, &path, depth + 1, &rules)?;
                }
            }
        }
        Ok(())
    }
}

fn is_left_out(name: &OsStr) -> bool {
    LEFT_OUT.iter().any(|left_out| name == *left_out)
}

/// Returns what is there, and whether it is a directory. `None` if it has just gone.
fn look(dir: &OwnedFd, name: &OsStr) -> Option<(Seen, bool)> {
    let stat = match fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return None,
        Err(_) => return Some((Seen { state: Kind::Other, mode: 0, stamp: FileStamp::default() }, false)),
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let state = match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink => {
            let target = fs::readlinkat(dir, name, Vec::new()).ok()?;
            Kind::Link(PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes())))
        }
        _ => Kind::Other,
    };
    let seen = Seen { state, mode: stat.st_mode & 0o7777, stamp: stamp(&stat) };
    Some((seen, kind == FileType::Directory))
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types differ by system")]
fn stamp(stat: &Stat) -> FileStamp {
    FileStamp {
        inode: stat.st_ino as u64,
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}
