//! Finds the protected files of a working directory, so that a command cannot change them.

use std::{
    os::fd::AsFd as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::fs::{Dir, FileType};

use super::{Access, class_of};
use crate::tools::Workspace;

/// The number of entries that are looked at, and the number that are returned.
const MAX_ENTRIES: usize = 100_000;
const MAX_FOUND: usize = 1_000;
/// The time that is taken at most.
const TIME_LIMIT: Duration = Duration::from_millis(300);
/// Directories of git itself, in which git writes, and the entries in them that steer it.
const GIT: &str = ".git";
const STEERS_GIT: &[&str] = &["hooks", "config", "config.worktree", "info"];
/// Directories of build systems, which are large and have nothing in them that is protected.
const BUILT: &[&str] = &["node_modules", "target", "__pycache__", ".venv", "venv"];

/// Returns the paths of the protected files and directories that exist, relative to the working directory and without
/// links. Of a `.git` only what steers git, because commands may commit. In a tree that is too large for the limits some
/// are missing.
pub(in crate::tools) fn existing(workspace: &Workspace) -> Vec<PathBuf> {
    let until = Instant::now() + TIME_LIMIT;
    let mut found = Vec::new();
    let mut open = std::collections::VecDeque::from([String::new()]);
    let mut seen = 0;
    while let Some(dir) = open.pop_front() {
        let Ok(fd) = workspace.open_dir(&dir) else { continue };
        let Ok(entries) = Dir::read_from(fd.as_fd()) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_ENTRIES || found.len() >= MAX_FOUND || Instant::now() > until {
                return found;
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let path = if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
            let kind = entry.file_type();
            if name == GIT && kind == FileType::Directory {
                open.push_back(path);
            } else if dir == GIT || dir.ends_with("/.git") {
                found.extend(STEERS_GIT.contains(&name).then(|| PathBuf::from(path)));
            } else if is_protected(&path, kind) {
                found.push(PathBuf::from(path));
            } else if kind == FileType::Directory && !BUILT.contains(&name) {
                open.push_back(path);
            }
        }
    }
    found
}

fn is_protected(path: &str, kind: FileType) -> bool {
    match kind {
        // `x` stands for any file in it.
        FileType::Directory => class_of(&format!("{path}/x"), Access::Write).is_some(),
        FileType::RegularFile => class_of(path, Access::Write).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tools::WorkDir;

    #[test]
    fn protected_files_are_found_and_git_can_still_commit() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            ".git/hooks/x",
            ".git/config",
            ".git/objects/a/b",
            ".git/HEAD",
            "sub/.env",
            "src/main.rs",
            ".github/workflows/ci.yml",
            "AGENTS.md",
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink("src/main.rs", dir.path().join(".bashrc")).unwrap();
        let work_dir = WorkDir::without_home(dir.path()).unwrap();
        let mut found = existing(work_dir.workspace());
        found.sort();
        let found: Vec<&str> = found.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(found, [".git/config", ".git/hooks", ".github/workflows", "AGENTS.md", "sub/.env"]);
    }
}
