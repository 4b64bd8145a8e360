//! Removes protected names that a command has made, with everything in them.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::Dir;

use crate::{
    core::error_chain,
    journal::{FileState, NewChange},
    tools::{
        WorkDir, Workspace,
        protected::git_files,
        workspace::{Found, OpenedDirs, PlaceError},
    },
};

/// The most bytes of contents that are kept of one removal, and the most paths of which it is recorded. A command that makes
/// more does it on purpose.
const MAX_KEPT: u64 = 32 << 20;
const MAX_RECORDED: usize = 1_000;

/// A protected name that a command has made.
#[derive(Debug)]
pub(super) struct NewItem {
    pub(super) path: PathBuf,
    /// The state before the command: missing, or a link, which is made again.
    pub(super) before: FileState,
}

#[derive(Debug, Default)]
pub(super) struct Removed {
    /// The items that are gone as a whole, and of the others the paths in them that are gone.
    pub(super) paths: Vec<PathBuf>,
    /// The paths that could not be removed, with the reasons.
    pub(super) left: Vec<(PathBuf, String)>,
}

/// One path that is removed.
struct Step<'a> {
    item: &'a NewItem,
    path: PathBuf,
    found: Found,
}

impl Step<'_> {
    fn before(&self) -> FileState {
        if self.path == self.item.path { self.item.before.clone() } else { FileState::Missing }
    }
}

/// Removes the items, but for what `stays` says. What is removed is in the journal before, with its content if that is not
/// too large.
pub(super) fn remove(
    work_dir: &WorkDir,
    items: &[NewItem],
    stays: &(dyn Fn(&Path) -> bool + Sync),
) -> Removed {
    let limit = work_dir.recording().map_or(0, |(entry, ..)| entry.journal().max_file_bytes());
    let mut removed = Removed::default();
    let steps = work_dir.restore_sandboxed(|workspace, _| {
        let mut plan = Plan {
            workspace,
            stays,
            limit,
            bytes_left: MAX_KEPT,
            steps: Vec::new(),
            left: Vec::new(),
            opened: OpenedDirs::to_change(),
        };
        for item in items {
            plan.add(item, &item.path);
        }
        removed.left = plan.left;
        plan.steps
    });
    record(work_dir, &steps[..steps.len().min(MAX_RECORDED)]);
    work_dir.restore_sandboxed(|workspace, _| {
        let mut opened = OpenedDirs::to_change();
        for step in &steps {
            opened.go_to(workspace, &step.path);
            match take_away(workspace, step) {
                Ok(true) => removed.paths.push(step.path.clone()),
                Ok(false) => {}
                Err(error) => removed.left.push((step.path.clone(), error.to_string())),
            }
        }
    });
    removed.paths.sort();
    // What is in a directory that is gone is not named.
    removed.paths.dedup_by(|inner, outer| inner.starts_with(outer));
    removed
}

/// Records that the command has made the paths, and, as another call, that they are removed. So an undo of the run leaves
/// them removed, and an undo of that other call brings them back.
fn record(work_dir: &WorkDir, steps: &[Step<'_>]) {
    let Some((entry, call, tool)) = work_dir.recording().filter(|_| !steps.is_empty()) else { return };
    let is_not_kept = |found: &Found| found.content.is_none() && found.state == FileState::Other;
    let made = steps
        .iter()
        .rev()
        .map(|step| NewChange::of(step.path.clone(), step.before(), step.found.state.clone()));
    let removed = steps.iter().map(|step| NewChange {
        content: step.found.content.clone(),
        not_kept: is_not_kept(&step.found),
        ..NewChange::of(step.path.clone(), step.found.state.clone(), step.before())
    });
    let recorded = entry
        .record(call, tool, made.collect())
        .and_then(|()| entry.record(&format!("{call}.protected"), tool, removed.collect()));
    if let Err(error) = recorded {
        tracing::error!(error = error_chain(&error), "a removal of protected names was not recorded");
    }
}

/// Removes one path. Returns false if it is a directory in which something stays.
fn take_away(workspace: &Workspace, step: &Step<'_>) -> Result<bool, PlaceError> {
    let Some(place) = workspace.place(&step.path)? else { return Ok(false) };
    let is_same = |now: &Found| match (now.stamp(), step.found.stamp()) {
        (Some(now), Some(then)) => (now.inode, now.modified) == (then.inode, then.modified),
        _ => false,
    };
    let removed = match place.remove(&step.found) {
        // Another name of the same file was removed, which shows in its times.
        Err(PlaceError::Changed) => match place.glance()? {
            now if is_same(&now) => place.remove(&now),
            _ => Err(PlaceError::Changed),
        },
        removed => removed,
    };
    match removed {
        Ok(()) => {}
        Err(PlaceError::NotEmpty) => return Ok(false),
        Err(error) => return Err(error),
    }
    if let FileState::Link { target } = step.before() {
        place.link(&Found::missing(), &target)?;
    }
    Ok(true)
}

/// Collects what is to be removed: what is in a directory before the directory.
struct Plan<'w, 'a> {
    workspace: &'w Workspace,
    stays: &'a (dyn Fn(&Path) -> bool + Sync),
    /// The largest file that is kept, and what all may have together.
    limit: u64,
    bytes_left: u64,
    steps: Vec<Step<'a>>,
    left: Vec<(PathBuf, String)>,
    opened: OpenedDirs,
}

impl<'a> Plan<'_, 'a> {
    fn add(&mut self, item: &'a NewItem, path: &Path) {
        if let Err(error) = self.try_to_add(item, path) {
            self.left.push((path.to_owned(), error.to_string()));
        }
    }

    fn try_to_add(&mut self, item: &'a NewItem, path: &Path) -> Result<(), PlaceError> {
        let Some(place) = self.workspace.place(path)? else { return Ok(()) };
        let found = place.glance()?;
        if found.state == FileState::Missing || (self.stays)(path) {
            return Ok(());
        }
        let file = self.workspace.open_real(path);
        let stays = is_harmless_to_git(&item.path, path, &found.state, file.as_ref())
            || file.as_ref().is_some_and(|file| self.leads_to_git_dir(path, file));
        if matches!(found.state, FileState::Dir { .. }) {
            for name in self.names_in(path)? {
                self.add(item, &path.join(name));
            }
        }
        if stays {
            return Ok(());
        }
        let bytes = found.stamp().map_or(0, |stamp| stamp.bytes);
        let found = if file.is_some() && bytes <= self.limit.min(self.bytes_left) {
            self.bytes_left -= bytes;
            place.look(self.limit)?
        } else {
            found
        };
        self.steps.push(Step { item, path: path.to_owned(), found });
        Ok(())
    }

    /// Returns true for the `.git` of a submodule or of a further working tree, whose git directory is in the working
    /// directory and has nothing in it that a command has made and that steers git: such files are removed before.
    fn leads_to_git_dir(&self, path: &Path, file: &File) -> bool {
        let roots = self.workspace.absolute_names();
        let git_dir = git_files::text_of(file).and_then(|text| git_files::git_dir_of(path, &text, roots));
        git_dir.is_some_and(|dir| {
            // The name of the first of them that is there stays protected, and with it all directories above it.
            let has = |name: &str| self.workspace.open_real(&dir.join(name)).is_some();
            self.workspace.open_real_dir(&dir).is_ok() && (has("commondir") || has("config"))
        })
    }

    fn names_in(&mut self, path: &Path) -> Result<Vec<OsString>, PlaceError> {
        self.opened.enter(self.workspace, path);
        let listing = Dir::read_from(self.workspace.open_real_dir(path)?)?;
        let names = listing.flatten().map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
        Ok(names.filter(|name| name != "." && name != "..").collect())
    }
}

/// Returns true for what every new repository has and what makes git run nothing.
fn is_harmless_to_git(item: &Path, path: &Path, state: &FileState, file: Option<&File>) -> bool {
    let Ok(inner) = path.strip_prefix(item) else { return false };
    match (state, file) {
        (FileState::Dir { .. }, _) => git_files::is_harmless_dir(item, inner),
        (_, Some(file)) => git_files::is_harmless_file(item, inner, || git_files::text_of(file)),
        _ => false,
    }
}
