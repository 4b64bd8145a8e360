//! Compares a tree with what was recorded of it.

use std::{
    collections::BTreeSet,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    RACY,
    scan::{Kind, Scan, Seen},
};
use crate::{
    journal::{FileState, NewChange, TreeFile},
    tools::Workspace,
};

/// An earlier look at a tree, and a function that says which entries may have changed since without a difference.
pub(super) type LookBefore<'a> = (&'a Scan, &'a dyn Fn(&Seen) -> bool);

/// Returns what differs from the recorded tree. `before` is the look at the tree from which the record was made, if there is
/// one: a file that looks the same is not read then, unless the function says that it may have changed all the same.
pub(super) fn changes_since(
    workspace: &Workspace,
    recorded: &[TreeFile],
    before: Option<LookBefore<'_>>,
    after: &Scan,
) -> Vec<NewChange> {
    let mut changes = Vec::new();
    let paths: BTreeSet<&Path> = recorded.iter().map(|file| &*file.path).collect();
    let is_left_out = |path: &Path| after.left_out.keys().any(|dir| path.starts_with(dir));
    for file in recorded {
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
            // It has not gone. A rule that leaves it out now has come.
            None if is_left_out(&file.path) => continue,
            None => FileState::Missing,
            Some(now) => state(workspace, &file.path, now),
        };
        if now != file.state {
            let change = NewChange::of(file.path.clone(), file.state.clone(), now);
            changes.push(NewChange { not_kept: file.not_kept, ..change });
        }
    }
    for (path, now) in &after.entries {
        if !paths.contains(&**path) {
            let now = state(workspace, path, now);
            changes.push(NewChange::of(path.clone(), FileState::Missing, now));
        }
    }
    changes
}

/// Reads the entry, if it is a file.
fn state(workspace: &Workspace, path: &Path, seen: &Seen) -> FileState {
    match &seen.state {
        Kind::File => match workspace.place(path).ok().flatten().map(|place| place.look(0)) {
            Some(Ok(found)) => found.state,
            Some(Err(_)) | None => FileState::Other,
        },
        Kind::Link(target) => FileState::Link { target: target.clone() },
        Kind::Dir => FileState::Dir { mode: seen.mode },
        Kind::Other => FileState::Other,
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
