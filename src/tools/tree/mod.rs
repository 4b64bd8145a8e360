//! Finds out what a command has changed in the working directory: looks at the tree before and after, and keeps the
//! contents before.
//!
//! Directories that are ignored (by `.gitignore`, and a few by name) are left out, and so are files that are too large. Both
//! are named before the command runs.

mod compare;
mod scan;
#[cfg(test)]
mod tests;

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use super::{WorkDir, Workspace};
use crate::{
    core::error_chain,
    journal::{
        Change, Entry, FileStamp, FileState, JournalError, OpenCommand, TreeFile, parse_tree, tree_bytes,
    },
};
use compare::{changes_since, is_racy};
use scan::{Scan, Seen, scan};

/// The most entries of a tree that is compared.
const MAX_ENTRIES: usize = 50_000;
/// The most bytes of contents that are kept before one command.
const MAX_BYTES: u64 = 256 << 20;

/// A limit for looking at a tree.
#[derive(Clone, Copy, Debug)]
struct Limits {
    entries: usize,
    bytes: u64,
    file_bytes: u64,
}

/// The changes of a command that undo will not cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NotCovered {
    /// The tree has too many entries, so nothing is covered.
    pub everything: bool,
    /// Ignored directories, sorted.
    pub dirs: Vec<PathBuf>,
    /// Files that are too large, or that come after the limit of all together, sorted.
    pub files: Vec<PathBuf>,
}

impl NotCovered {
    /// Returns a line for the end of the preview of a command, or an empty text if all is covered.
    pub(super) fn note(&self) -> String {
        /// The most names that the note has.
        const NAMED: usize = 6;
        if self.everything {
            return format!(
                "\n`kontekst undo` will not cover this: there are more than {MAX_ENTRIES} files."
            );
        }
        // Commands may hardly write in `.git`, and everybody knows that it is there.
        let dirs = self.dirs.iter().filter(|dir| !dir.ends_with(".git"));
        let dirs = dirs.map(|dir| format!("{}/", dir.display()));
        let names: Vec<String> =
            dirs.chain(self.files.iter().map(|file| file.display().to_string())).collect();
        if names.is_empty() {
            return String::new();
        }
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = names[..names.len().min(NAMED)].join(", ");
        format!("\n`kontekst undo` will not cover {named}{more}.")
    }
}

/// The tree as it was before a command, if it was looked at.
#[derive(Clone, Copy)]
pub(super) enum TreeBefore<'a> {
    Seen(&'a Scan),
    /// It has too many entries, so nothing that the command changes is recorded.
    TooLarge,
    /// Nothing is recorded, because the user has chosen that.
    NotRecorded,
}

impl TreeBefore<'_> {
    /// Returns the path at which a file or a directory was that looks like this now. A file may not have changed since.
    pub(super) fn path_of(&self, stamp: FileStamp, is_dir: bool) -> Option<PathBuf> {
        let Self::Seen(scan) = self else { return None };
        let left_out = || scan.left_out.iter().find(|(_, inode)| is_dir && **inode == stamp.inode);
        let was_here = |seen: &Seen| {
            let then = seen.stamp;
            let is_same_file = then.bytes == stamp.bytes && then.modified == stamp.modified;
            let was_dir = seen.state == scan::Kind::Dir;
            then.inode == stamp.inode && was_dir == is_dir && (is_dir || is_same_file)
        };
        let found = scan.entries.iter().find(|(_, seen)| was_here(seen)).map(|(path, _)| path);
        found.or_else(|| left_out().map(|(path, _)| path)).cloned()
    }
}

impl TreeBefore<'_> {
    /// Returns a line that says that nothing of the command can be taken back, if that is so.
    pub(super) fn note(self) -> Option<String> {
        let everything = NotCovered { everything: true, ..NotCovered::default() };
        matches!(self, Self::TooLarge).then(|| format!("{}\n", everything.note().trim_start()))
    }
}

/// Returns what undo will not cover of a command that runs now. Reads no file. Everything is covered where nothing is
/// recorded, because the user has chosen that.
pub(super) fn not_covered(work_dir: &WorkDir) -> NotCovered {
    let Some((entry, ..)) = work_dir.recording() else { return NotCovered::default() };
    let limits = limits(entry);
    match scan(work_dir.workspace(), limits) {
        Ok(scan) => NotCovered {
            everything: false,
            files: scan.over(limits).map(|(path, _)| path.clone()).collect(),
            dirs: scan.left_out.into_keys().collect(),
        },
        Err(_) => NotCovered { everything: true, ..NotCovered::default() },
    }
}

/// Runs a command and records what it has changed. What is recorded before it is enough to take it back if this process is
/// ended meanwhile.
///
/// Costs one look at each entry of the tree before and after, and a read of each file that was not seen so before.
///
/// # Errors
///
/// [`JournalError`] if the tree cannot be recorded. The command has not run then.
pub(super) fn run_covered<T>(
    work_dir: &WorkDir,
    run: impl FnOnce(TreeBefore<'_>) -> T,
) -> Result<T, JournalError> {
    let Some((entry, call, tool)) = work_dir.recording() else { return Ok(run(TreeBefore::NotRecorded)) };
    let limits = limits(entry);
    let Ok(before) = scan(work_dir.workspace(), limits) else { return Ok(run(TreeBefore::TooLarge)) };
    let started = SystemTime::now();
    let mut kept = Vec::new();
    entry.record_command_start(call, tool, || {
        kept = keep(work_dir.workspace(), entry, &before, limits)?;
        Ok(tree_bytes(&kept))
    })?;
    let result = run(TreeBefore::Seen(&before));
    let recorded = match scan(work_dir.workspace(), limits) {
        Ok(after) => {
            let racy = |seen: &Seen| is_racy(seen, started);
            let changes = changes_since(
                work_dir.workspace(),
                &kept,
                Some((&before, &racy as &dyn Fn(&Seen) -> bool)),
                &after,
            );
            entry.record_command_end(call, tool, changes)
        }
        // The record of the start stays, so that an undo can compare with it when the tree is smaller again.
        Err(_) => Ok(()),
    };
    if let Err(error) = recorded {
        tracing::error!(error = error_chain(&error), "the changes of a command were not recorded");
    }
    Ok(result)
}

/// Returns the changes of a command whose end was not recorded: everything that is not as it was before.
///
/// # Errors
///
/// [`JournalError`] if the record of the tree cannot be read.
pub(super) fn changes_of(
    workspace: &Workspace,
    entry_contents: &crate::journal::Contents,
    command: &OpenCommand,
    file_bytes: u64,
) -> Result<Vec<Change>, JournalError> {
    let kept = parse_tree(&entry_contents.read(command.tree, command.bytes)?);
    let limits = Limits { entries: MAX_ENTRIES * 2, bytes: MAX_BYTES, file_bytes };
    let Ok(after) = scan(workspace, limits) else { return Ok(Vec::new()) };
    let changes = changes_since(workspace, &kept, None, &after).into_iter().map(|change| Change {
        call: command.call.clone(),
        tool: command.tool.clone(),
        at: command.at,
        path: change.path,
        before: change.before,
        after: change.after,
        not_kept: change.not_kept,
    });
    Ok(changes.collect())
}

fn limits(entry: &Entry) -> Limits {
    Limits { entries: MAX_ENTRIES, bytes: MAX_BYTES, file_bytes: entry.journal().max_file_bytes() }
}

/// Stores the content of each file of the tree, unless it is known from before.
fn keep(
    workspace: &Workspace,
    entry: &Entry,
    tree: &Scan,
    limits: Limits,
) -> Result<Vec<TreeFile>, JournalError> {
    let journal = entry.journal();
    let over: std::collections::BTreeSet<&PathBuf> = tree.over(limits).map(|(path, _)| path).collect();
    let mut known = journal.seen_files(&entry.head().dir);
    let (mut files, mut added, mut new) = (Vec::new(), 0, 0);
    for (path, seen) in &tree.entries {
        let state = match &seen.state {
            scan::Kind::File if over.contains(path) => None,
            scan::Kind::File => {
                let stamp = seen.stamp;
                let is_known = known.get(path).filter(|(of, ..)| *of == stamp);
                let content = match is_known {
                    Some((_, sha256, bytes)) => Some((*sha256, *bytes)),
                    None => match workspace.open_real(path) {
                        Some(file) => journal.contents().keep_file(&file, limits.file_bytes)?.map(|kept| {
                            added += if kept.new { kept.bytes } else { 0 };
                            new += usize::from(kept.new);
                            (kept.hash, kept.bytes)
                        }),
                        None => None,
                    },
                };
                content.map(|(sha256, bytes)| {
                    if !is_racy(seen, SystemTime::now()) {
                        known.insert(path.clone(), (stamp, sha256, bytes));
                    }
                    FileState::File { sha256, bytes, mode: seen.mode }
                })
            }
            scan::Kind::Link(target) => Some(FileState::Link { target: target.clone() }),
            scan::Kind::Dir => Some(FileState::Dir { mode: seen.mode }),
            scan::Kind::Other => Some(FileState::Other),
        };
        let not_kept = state.is_none();
        files.push(TreeFile { path: path.clone(), state: state.unwrap_or(FileState::Other), not_kept });
    }
    if new > 0 {
        journal.contents().sync()?;
        journal.note_added(added);
    }
    known.retain(|path, _| tree.entries.contains_key(path));
    journal.note_seen_files(&entry.head().dir, known);
    Ok(files)
}

/// The time in which a file can change twice without a difference in its times: more than one tick of any kernel.
const RACY: Duration = Duration::from_millis(50);
