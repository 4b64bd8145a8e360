//! Finds the protected names of a working directory: before a command, so that it cannot change them, and after it, to see
//! which ones are new.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::{OsStr, OsString},
    os::{
        fd::AsFd as _,
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};

use super::{Access, class_of, git_files};
use crate::tools::Workspace;

/// The number of files and directories that are made read-only for a command. Each is a mount.
const MAX_READ_ONLY: usize = 1_000;
/// Directories of build systems, which are large and have nothing in them that is protected.
const BUILT: &[&str] = &["node_modules", "target", "__pycache__", ".venv", "venv"];
/// The number of names of a directory's own path that can belong to a pattern together with names in it: one less than
/// the longest pattern of the table has.
pub(super) const NAMES_ABOVE: usize = 2;

/// A limit for looking at a tree.
#[derive(Clone, Copy, Debug)]
pub(in crate::tools) struct LookLimits {
    entries: usize,
    time: Duration,
}

impl LookLimits {
    /// For the look before a command, for which a person may wait.
    pub(in crate::tools) const BEFORE: Self = Self { entries: 100_000, time: Duration::from_millis(300) };
    /// For the look after it. It is larger, so that a command cannot hide a file among many others.
    pub(in crate::tools) const AFTER: Self = Self { entries: 2_000_000, time: Duration::from_secs(10) };
}

/// The protected names of a working directory at one moment.
#[derive(Debug, Default)]
pub(in crate::tools) struct Inventory {
    /// Paths relative to the working directory, without links above them. The outer ones come first.
    pub(in crate::tools) items: Vec<(PathBuf, ItemKind)>,
    /// Directories that this user cannot list.
    pub(in crate::tools) unreadable: BTreeSet<PathBuf>,
    /// False if the tree is too large for the limits, so that some names are missing.
    pub(in crate::tools) is_whole: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tools) enum ItemKind {
    File,
    /// The directory and everything in it.
    Dir,
    /// A symbolic link with this target.
    Link(PathBuf),
    /// A socket, a FIFO or a device.
    Special,
}

impl Inventory {
    /// Looks at the tree. Links are not followed. Of a `.git` only what steers git is listed, because commands may commit.
    pub(in crate::tools) fn take(workspace: &Workspace, limits: LookLimits) -> Self {
        let mut look = Look {
            inventory: Self { is_whole: true, ..Self::default() },
            open: VecDeque::from([PathBuf::new()]),
            above: names_above(workspace),
            entries_left: limits.entries,
            until: Instant::now() + limits.time,
        };
        while let Some(dir) = look.open.pop_front() {
            if !look.directory(workspace, &dir) {
                look.inventory.is_whole = false;
                break;
            }
        }
        look.inventory
    }

    /// Returns the files and directories that a command gets read-only, the outer ones first. Nothing is mounted on a link.
    pub(in crate::tools) fn read_only(&self) -> Vec<PathBuf> {
        let mounted = self.items.iter().filter(|(_, kind)| matches!(kind, ItemKind::File | ItemKind::Dir));
        mounted.take(MAX_READ_ONLY).map(|(path, _)| path.clone()).collect()
    }
}

/// Returns the reason for which a file or directory of this name is protected, as the rest of a sentence. The path is
/// relative to the working directory.
pub(in crate::tools) fn reason(workspace: &Workspace, path: &Path) -> Option<&'static str> {
    let path = joined(&names_above(workspace), path);
    class_of(&path, Access::Write).map(|class| class.reason)
}

/// Returns the end of the working directory's own path, unless everything in it is protected for that. Then the names
/// within it are judged alone, because there would be nothing that a command may write.
fn names_above(workspace: &Workspace) -> String {
    let Some(root) = workspace.absolute_names().last() else { return String::new() };
    if class_of(&format!("{root}/x"), Access::Write).is_some() {
        return String::new();
    }
    let names: Vec<&str> = root.split('/').filter(|name| !name.is_empty()).collect();
    names[names.len().saturating_sub(NAMES_ABOVE)..].join("/")
}

fn joined(above: &str, path: &Path) -> String {
    format!("{above}/{}", path.to_string_lossy())
}

struct Look {
    inventory: Inventory,
    /// The directories that are still to be looked into.
    open: VecDeque<PathBuf>,
    above: String,
    entries_left: usize,
    until: Instant,
}

impl Look {
    /// Returns false if a limit is reached.
    fn directory(&mut self, workspace: &Workspace, dir: &Path) -> bool {
        let Ok(fd) = workspace.open_real_dir(dir) else {
            self.inventory.unreadable.insert(dir.to_owned());
            return true;
        };
        let Ok(entries) = Dir::read_from(fd.as_fd()) else { return true };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.entries_left == 0 || Instant::now() > self.until {
                return false;
            }
            self.entries_left -= 1;
            let kind = match entry.file_type() {
                FileType::Unknown => statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            let kind = match kind {
                FileType::RegularFile => ItemKind::File,
                FileType::Directory => ItemKind::Dir,
                FileType::Symlink => {
                    let target = readlinkat(&fd, name, Vec::new()).unwrap_or_default().into_bytes();
                    ItemKind::Link(PathBuf::from(OsString::from_vec(target)))
                }
                _ => ItemKind::Special,
            };
            self.entry(dir.join(name), name, kind);
        }
        true
    }

    fn entry(&mut self, path: PathBuf, name: &OsStr, kind: ItemKind) {
        let found = match git_files::place_of(&path, kind == ItemKind::Dir) {
            git_files::Place::Directory => {
                self.open.push_back(path);
                return;
            }
            git_files::Place::Steers => true,
            git_files::Place::Other => return,
            git_files::Place::Outside => self.is_protected(&path, &kind),
        };
        let is_built = || BUILT.iter().any(|built| name == *built);
        if found {
            self.inventory.items.push((path, kind));
        } else if kind == ItemKind::Dir && !is_built() {
            self.open.push_back(path);
        }
    }

    fn is_protected(&self, path: &Path, kind: &ItemKind) -> bool {
        let path = joined(&self.above, path);
        // `x` stands for any file in it.
        let of_dir = || class_of(&format!("{path}/x"), Access::Write).is_some();
        match kind {
            ItemKind::Dir => of_dir(),
            ItemKind::File | ItemKind::Special => class_of(&path, Access::Write).is_some(),
            // It can stand for both.
            ItemKind::Link(_) => class_of(&path, Access::Write).is_some() || of_dir(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tools::WorkDir;

    fn found(dir: &Path) -> Vec<(String, ItemKind)> {
        let work_dir = WorkDir::without_home(dir).unwrap();
        let inventory = Inventory::take(work_dir.workspace(), LookLimits::BEFORE);
        assert!(inventory.is_whole);
        let mut found: Vec<_> =
            inventory.items.into_iter().map(|(path, kind)| (path.display().to_string(), kind)).collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }

    fn put(dir: &Path, path: &str) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }

    #[test]
    fn protected_files_are_found_and_git_can_still_commit() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            ".git/hooks/x",
            ".git/config",
            ".git/objects/a/config",
            ".git/refs/heads/hooks/x",
            ".git/HEAD",
            ".git/modules/lib/a/config",
            ".git/modules/lib/a/objects/x",
            ".git/worktrees/w/commondir",
            "bare.git/hooks/x",
            "sub/.env",
            "src/main.rs",
            ".github/workflows/ci.yml",
            "AGENTS.md",
            "target/.env",
        ] {
            put(dir.path(), path);
        }
        std::os::unix::fs::symlink("src/main.rs", dir.path().join(".bashrc")).unwrap();
        let found = found(dir.path());
        let names: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            names,
            [
                ".bashrc",
                ".git/config",
                ".git/hooks",
                ".git/modules/lib/a/config",
                ".git/worktrees/w/commondir",
                ".github/workflows",
                "AGENTS.md",
                "bare.git/hooks",
                "sub/.env"
            ]
        );
        assert_eq!(found[0].1, ItemKind::Link("src/main.rs".into()));
    }

    #[test]
    fn the_path_of_the_working_directory_counts_unless_all_of_it_is_protected() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), ".config/systemd/user/x.service");
        assert_eq!(found(&dir.path().join(".config")), [("systemd".to_owned(), ItemKind::Dir)]);
        put(dir.path(), ".claude/worktrees/w/src/main.rs");
        put(dir.path(), ".claude/worktrees/w/.env");
        assert_eq!(found(&dir.path().join(".claude/worktrees/w")), [(".env".to_owned(), ItemKind::File)]);
    }
}
