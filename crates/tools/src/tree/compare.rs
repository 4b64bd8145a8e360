//! Compares a tree with what was recorded of it.

use std::{
    collections::BTreeSet,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use kontekst_store::journal::{FileState, Metadata, NewChange, TreeFile};

use super::{
    RACY,
    scan::{Kind, Scan, Seen},
};

use crate::{
    Workspace,
    workspace::{OpenedDirs, PlaceError},
};

/// An earlier look at a tree, and a function that says which entries may have changed since without a difference.
pub(super) type SeenBefore<'a> = (&'a Scan, &'a dyn Fn(&Seen) -> bool);

/// Returns what differs from the recorded tree. `before` is the look at the tree from which the record was made, if there is
/// one: a file that looks the same is not read then, unless the function says that it may have changed all the same.
pub(super) fn changes_since(
    workspace: &Workspace,
    recorded: &[TreeFile],
    before: Option<SeenBefore<'_>>,
    after: &Scan,
) -> Vec<NewChange> {
    let mut changes = Vec::new();
    let mut opened = OpenedDirs::to_look();
    let paths: BTreeSet<&Path> = recorded.iter().map(|file| &*file.path).collect();
    for file in recorded.iter().filter(|file| file.left_out.is_none()) {
        let now = after.entries.get(&file.path);
        let looked = before.and_then(|(before, is_racy)| {
            let seen = before.entries.get(&file.path)?;
            Some((seen, is_racy(seen)))
        });
        if let (Some(now), Some((seen, false))) = (now, &looked)
            && *seen == now
        {
            continue;
        }
        if file.not_kept && matches!((now, &looked), (Some(now), Some((seen, _))) if *seen == now) {
            continue;
        }
        let now = match now {
            // It may be in a directory that was left out and has another path now.
            None => state_at(workspace, &mut opened, &file.path),
            Some(now) => state(workspace, &mut opened, &file.path, now),
        };
        // An earlier version has recorded no metadata.
        let now = if file.state.metadata() == Metadata::default() {
            now.with_metadata(Metadata::default())
        } else {
            now
        };
        if now != file.state {
            let change = NewChange::of(file.path.clone(), file.state.clone(), now);
            changes.push(NewChange { not_kept: file.not_kept, ..change });
        }
    }
    for (path, now) in &after.entries {
        if !paths.contains(&**path) {
            let now = state(workspace, &mut opened, path, now).with_metadata(Metadata::default());
            changes.push(NewChange::of(path.clone(), FileState::Missing, now));
        }
    }
    changes
}

/// Reads the entry, if it is a file.
fn state(workspace: &Workspace, opened: &mut OpenedDirs, path: &Path, seen: &Seen) -> FileState {
    match &seen.state {
        Kind::File => state_at(workspace, opened, path),
        Kind::Link(target) => FileState::Link { target: target.clone() },
        Kind::Dir => FileState::Dir { mode: seen.mode },
        Kind::Other => FileState::Other,
    }
}

/// Looks at the path. Nothing is at one above which a link is.
fn state_at(workspace: &Workspace, opened: &mut OpenedDirs, path: &Path) -> FileState {
    match opened.look(workspace, path, 0) {
        Ok(found) => found.state,
        Err(PlaceError::Link) => FileState::Missing,
        Err(_) => FileState::Other,
    }
}

/// Returns true if the file was changed so shortly before `when` that a later change may not show in its times.
pub(super) fn is_racy(seen: &Seen, when: SystemTime) -> bool {
    let (seconds, nanos) = seen.stamp.changed.max(seen.stamp.modified);
    let when = when.duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let end = i128::try_from(when.as_nanos()).unwrap_or(i128::MAX);
    let racy = i128::try_from(RACY.as_nanos()).unwrap_or(0);
    changed + racy >= end
}
