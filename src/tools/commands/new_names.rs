//! Takes back the protected names that a command has made. What exists before it is made read-only, but no layer of the
//! sandbox can keep a single name from being made in a directory that may be written.
//!
//! What a person or another run makes under such a name while the command runs looks the same, and is taken back too.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::removal::{self, NewItem, Removed};
use crate::{
    journal::FileState,
    tools::{
        WorkDir, Workspace,
        protected::{Inventory, ItemKind, LookLimits},
        tree::TreeBefore,
    },
};

/// The protected names that were there before a command.
pub(super) struct NewNames {
    before: Inventory,
    started: SystemTime,
}

/// The protected names that a command has made, by what was done about them.
#[derive(Debug, Default)]
pub(super) struct TakenBack {
    /// The paths that were removed.
    removed: Vec<PathBuf>,
    /// Paths that had another name before, and have it again.
    moved_back: Vec<(PathBuf, PathBuf)>,
    /// Paths that could not be removed or looked at, with the reasons.
    left: Vec<(PathBuf, String)>,
    /// There may be more, because the tree is too large.
    is_part: bool,
}

impl NewNames {
    pub(super) fn look(workspace: &Workspace) -> Self {
        let started = SystemTime::now();
        Self { before: Inventory::take(workspace, LookLimits::BEFORE), started }
    }

    /// Returns the protected paths that exist and can be made read-only, but for `allowed`.
    pub(super) fn existing(&self, allowed: &[String]) -> Vec<PathBuf> {
        let mut paths = self.before.read_only();
        paths.retain(|path| !allowed.iter().any(|allowed| path == Path::new(allowed)));
        paths
    }

    /// Takes back what was made since, but for `allowed` and what is in it. A path of `allowed` counts in every directory,
    /// because the command may have changed into one.
    ///
    /// What had another name in `tree` gets that again. Everything else is recorded in the journal and removed, under the
    /// id of the call with `.protected` after it, so that `kontekst undo --call` can bring it back.
    pub(super) fn take_back(
        &self,
        work_dir: &WorkDir,
        allowed: &[String],
        tree: TreeBefore<'_>,
    ) -> TakenBack {
        let workspace = work_dir.workspace();
        let after = Inventory::take(workspace, LookLimits::AFTER);
        let unreadable = after.unreadable.difference(&self.before.unreadable);
        let unreadable = unreadable.map(|dir| (dir.clone(), "it cannot be listed".to_owned()));
        let mut taken_back =
            TakenBack { left: unreadable.collect(), is_part: !after.is_whole, ..TakenBack::default() };
        let mut items = self.new_items(workspace, &after);
        // Where a person has allowed something, it is not known of what moved.
        if allowed.is_empty() {
            items.retain(|item| match move_back(work_dir, item, tree) {
                Some(was) => {
                    taken_back.moved_back.push((item.path.clone(), was));
                    false
                }
                None => true,
            });
        }
        let stays = |path: &Path| is_among(allowed, path);
        // A file `.git` stands for a git directory, which is judged by what is left of it.
        let (git_files, items): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item.path.ends_with(".git"));
        for items in [items, git_files] {
            let Removed { paths, left } = removal::remove(work_dir, &items, &stays);
            taken_back.removed.extend(paths);
            taken_back.left.extend(left);
        }
        taken_back.removed.sort();
        taken_back
    }

    /// Returns what is new or has replaced a link, and what was there before.
    fn new_items(&self, workspace: &Workspace, after: &Inventory) -> Vec<NewItem> {
        let before: BTreeMap<&Path, &ItemKind> =
            self.before.items.iter().map(|(path, kind)| (&**path, kind)).collect();
        let new = after.items.iter().filter_map(|(path, kind)| {
            let before = match before.get(&**path) {
                None if self.before.is_whole || self.was_made_since(workspace, path) => FileState::Missing,
                Some(ItemKind::Special) if *kind != ItemKind::Special => FileState::Missing,
                Some(was @ ItemKind::Link(target)) if kind != *was => {
                    FileState::Link { target: target.clone() }
                }
                None | Some(_) => return None,
            };
            Some(NewItem { path: path.clone(), before })
        });
        new.collect()
    }

    /// Returns true if the file system says that the file was made after the look before the command.
    fn was_made_since(&self, workspace: &Workspace, path: &Path) -> bool {
        let place = workspace.place(path).ok().flatten();
        place.and_then(|place| place.made_at()).is_some_and(|made| made >= self.started)
    }
}

/// Returns true if the path is one of those, in any directory, or in one of them.
fn is_among(allowed: &[String], path: &Path) -> bool {
    allowed.iter().any(|allowed| path.ancestors().any(|path| path.ends_with(allowed)))
}

/// Gives a file or a directory the name that it had before the command. Returns that name.
fn move_back(work_dir: &WorkDir, item: &NewItem, tree: TreeBefore<'_>) -> Option<PathBuf> {
    if item.before != FileState::Missing {
        return None;
    }
    work_dir.restore_sandboxed(|workspace, _| {
        let place = workspace.place(&item.path).ok()??;
        let found = place.glance().ok()?;
        let was = tree.path_of(found.stamp()?, matches!(found.state, FileState::Dir { .. }))?;
        place.rename_to(&workspace.place(&was).ok()??).ok()?;
        Some(was)
    })
}

impl TakenBack {
    /// Returns what a person should see in the line that says how the command ended. `None` if there is nothing.
    pub(super) fn in_a_few_words(&self) -> Option<String> {
        let moved = self.moved_back.iter().map(|(path, _)| path);
        let taken: Vec<&PathBuf> = self.removed.iter().chain(moved).collect();
        match (&taken[..], &self.left[..]) {
            ([], []) if self.is_part => Some("; too many files to find new protected names".to_owned()),
            ([], []) => None,
            ([], [(first, _), ..]) => {
                Some(format!("; left {}, a protected name or unreadable", shown(first)))
            }
            ([one], _) => Some(format!("; took back {} (a protected name)", shown(one))),
            ([first, rest @ ..], _) => {
                Some(format!("; took back {} and {} more (protected names)", shown(first), rest.len()))
            }
        }
    }

    /// Returns what the model reads. Empty if there is nothing.
    pub(super) fn note(&self) -> String {
        /// The most names in one sentence.
        const NAMED: usize = 8;
        let list = |all: Vec<String>| {
            let more = all.len().saturating_sub(NAMED);
            let named = all[..all.len().min(NAMED)].join(", ");
            if more > 0 { format!("{named} and {more} more") } else { named }
        };
        let mut lines = Vec::new();
        if !self.removed.is_empty() {
            let names = list(self.removed.iter().map(|path| shown(path)).collect());
            lines.push(format!(
                "Removed after the command, because the names are protected: {names}. If you need such a file, propose it \
                 with write_file."
            ));
        }
        if !self.moved_back.is_empty() {
            let moved =
                self.moved_back.iter().map(|(path, was)| format!("{} to {}", shown(path), shown(was)));
            lines.push(format!("Moved back after the command: {}.", list(moved.collect())));
        }
        if !self.left.is_empty() {
            let left = self.left.iter().map(|(path, reason)| format!("{} ({reason})", shown(path)));
            lines.push(format!("Not removed: {}.", list(left.collect())));
        }
        if self.is_part {
            lines.push("There are too many files to find every new protected name.".to_owned());
        }
        lines.join("\n")
    }
}

/// Returns the path without control characters. The working directory is `.`.
fn shown(path: &Path) -> String {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.to_string_lossy()
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}
