//! Temporary files that a daemon which was killed has left beside the files that it changed.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use kontekst_store::journal::FileState;

use super::{PlannedFile, UndoStep, preview};

use crate::{
    Workspace,
    workspace::{OpenedDirs, is_left_behind},
};

/// The most files that one undo removes.
const MAX_FILES: usize = 100;

/// Plans to remove the temporary files in the directories of these paths.
pub(super) fn plan<'a>(
    workspace: &Workspace,
    opened: &mut OpenedDirs,
    paths: impl Iterator<Item = &'a Path>,
    limit: u64,
) -> Vec<PlannedFile> {
    let dirs: BTreeSet<&Path> = paths.filter_map(Path::parent).collect();
    let names = dirs.into_iter().flat_map(|dir| {
        opened.enter(workspace, dir);
        names_in(workspace, dir)
    });
    let files: Vec<PathBuf> = names.take(MAX_FILES).collect();
    let planned = files.into_iter().filter_map(|path| {
        let found = opened.look(workspace, &path, limit).ok()?;
        let is_file = matches!(found.state, FileState::File { .. } | FileState::Link { .. });
        let preview = preview::of(&path, &found, &FileState::Missing, None);
        let step = UndoStep::Restore { now: found.state, to: FileState::Missing, preview };
        is_file.then_some(PlannedFile { path, step })
    });
    planned.collect()
}

fn names_in(workspace: &Workspace, dir: &Path) -> Vec<PathBuf> {
    let Ok((_, entries)) = workspace.list_real_dir(dir) else { return Vec::new() };
    let left = entries.into_iter().filter(|entry| entry.name.to_str().is_some_and(is_left_behind));
    left.map(|entry| dir.join(entry.name)).collect()
}
