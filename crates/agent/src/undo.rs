//! Lists what runs have changed, and takes it back.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::OwnedMutexGuard, time::timeout};

use kontekst_core::{RunId, clock::unix_millis};
use kontekst_store::journal::{EntryHead, Journal, JournalError, StoredEntry, Undoes};
use kontekst_tools::{Restored, UndoPlan, WorkDir, WorkDirError};

use crate::{
    run::blocking,
    state::{AgentCore, Shared},
};

/// The most runs that one listing has.
const MAX_LISTED: usize = 100;
/// The most entries in which a call is looked for.
const MAX_SEARCHED: usize = 1000;

/// The time that an undo waits for the end of the run, or of another undo. A run whose client has just left ends within it: its
/// calls are given [`STOP_LIMIT`](crate::run::STOP_LIMIT).
const END_LIMIT: Duration = Duration::from_secs(3);

/// The changes that shall be taken back.
#[derive(Clone, Debug)]
pub enum UndoTarget {
    /// Those of the last run that changed something in this directory, above it or below it, and was not undone yet.
    Last(PathBuf),
    /// Those of a run or of an undo: its id or the start of one.
    Run(String),
    /// Those of one call: its id or the start of one.
    Call(String),
}

/// A run or an undo that changed files.
#[derive(Clone, Debug)]
pub struct ChangedRun {
    pub head: EntryHead,
    pub calls: Vec<ChangedCall>,
    /// The number of paths that it changed.
    pub files: usize,
    /// The undo that took all of it back.
    pub undone_by: Option<RunId>,
}

/// The changes of one call.
#[derive(Clone, Debug, Default)]
pub struct ChangedCall {
    /// Empty for an undo.
    pub id: String,
    pub tool: String,
    pub paths: Vec<PathBuf>,
}

/// A plan, with what it is about.
#[derive(Clone, Debug)]
pub struct PlannedUndo {
    pub head: EntryHead,
    /// The call whose changes are taken back. `None` for all changes of the run.
    pub call: Option<String>,
    pub plan: UndoPlan,
    /// A later run in the directory, which ran commands and left nothing that can be taken back.
    pub passed_over: Option<PassedOver>,
}

/// A run that was passed over on the way to the last one with something to take back.
#[derive(Clone, Debug)]
pub struct PassedOver {
    pub head: EntryHead,
    /// The changes of its commands were not recorded.
    pub has_unrecorded: bool,
}

/// A reason why nothing can be taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("no run has changed anything in `{}`, or all of it was taken back", .0.display())]
    Nothing(PathBuf),
    #[error("no call `{0}` has changed a file")]
    NoCall(String),
    #[error("`{0}` is the start of the ids of several calls")]
    AmbiguousCall(String),
    #[error("`{}` is not the directory any more in which the run worked", .0.display())]
    OtherDirectory(PathBuf),
    #[error("the run {0} is still in progress")]
    Active(RunId),
    #[error("another undo is still in progress")]
    Undoing,
    #[error("the files have changed since the plan was made")]
    Stale,
    #[error("the disk may not have what was taken back")]
    NotSynced(#[source] std::io::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
    #[error("a worker thread failed: {0}")]
    Panicked(String),
}

impl AgentCore {
    /// Returns the runs and undos that changed something in a directory, above it or below it, the newest first, 100 at
    /// most. `None` stands for all directories.
    ///
    /// # Errors
    ///
    /// [`UndoError::Journal`].
    pub async fn changed_runs(&self, dir: Option<PathBuf>) -> Result<Vec<ChangedRun>, UndoError> {
        self.undo_work(move |shared| changed_runs(&shared.storage.journal, dir.as_deref())).await
    }

    /// Returns what one run has changed, or `None` if it changed nothing.
    ///
    /// # Errors
    ///
    /// [`UndoError::Journal`].
    pub async fn changed_by(&self, run: RunId) -> Result<Option<ChangedRun>, UndoError> {
        self.undo_work(move |shared| match shared.storage.journal.read(&run) {
            Ok(entry) => Ok(Some(changed_run(entry, &HashMap::new()))),
            Err(JournalError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        })
        .await
    }

    /// Plans an undo and changes nothing. A run or an undo whose client has just left may go on for a moment, so this waits
    /// for its end, for up to 3 seconds each. `progress` is told how many of how many paths were looked at.
    ///
    /// # Errors
    ///
    /// Any [`UndoError`] but [`UndoError::Stale`] and [`UndoError::NotSynced`].
    pub async fn plan_undo(
        &self,
        target: UndoTarget,
        progress: impl Fn(usize, usize) + Clone + Send + 'static,
    ) -> Result<PlannedUndo, UndoError> {
        let _turn = self.turn_to_undo().await?;
        let plan_once = || {
            let (target, progress) = (target.clone(), progress.clone());
            self.undo_work(move |shared| plan(shared, &target, &progress).map(|(planned, _)| planned))
        };
        match plan_once().await {
            Err(UndoError::Active(run)) => {
                // If this takes too long, the second attempt fails as the first one did.
                timeout(END_LIMIT, self.shared.registry.wait_for_end(&run)).await.ok();
                plan_once().await
            }
            planned => planned,
        }
    }

    /// Takes changes back. `token` is that of the plan that a person has seen. `report` is told what became of each path.
    ///
    /// # Errors
    ///
    /// [`UndoError::Stale`] if the plan would be another one now. Nothing was changed then.
    pub async fn undo(
        &self,
        target: UndoTarget,
        token: String,
        mut report: impl FnMut(Restored) + Send + 'static,
    ) -> Result<(), UndoError> {
        let turn = self.turn_to_undo().await?;
        self.undo_work(move |shared| {
            let _turn = turn;
            carry_out(shared, &target, &token, &mut report)
        })
        .await
    }

    /// Waits until no undo is in progress, and keeps others from starting until the result is dropped.
    async fn turn_to_undo(&self) -> Result<OwnedMutexGuard<()>, UndoError> {
        let turn = Arc::clone(&self.shared.undoing).lock_owned();
        timeout(END_LIMIT, turn).await.map_err(|_| UndoError::Undoing)
    }

    async fn undo_work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, UndoError> + Send + 'static,
    ) -> Result<T, UndoError> {
        let shared = Arc::clone(&self.shared);
        let done = blocking(move || work(&shared)).join().await;
        done.unwrap_or_else(|error| Err(UndoError::Panicked(error.message)))
    }
}

fn changed_runs(journal: &Journal, dir: Option<&Path>) -> Result<Vec<ChangedRun>, UndoError> {
    let heads = journal.heads()?;
    let undone = undone(journal, &heads);
    let dir = dir.map(without_links);
    let is_meant = |head: &EntryHead| dir.as_ref().is_none_or(|dir| is_related(&head.dir, dir));
    let heads = heads.into_iter().filter(is_meant);
    // An entry that cannot be read is left out here, and said where it is named.
    let entries = heads.filter_map(|head| journal.read(&head.run).ok());
    let entries = entries.filter(StoredEntry::has_changes).take(MAX_LISTED);
    Ok(entries.map(|entry| changed_run(entry, &undone)).collect())
}

fn changed_run(entry: StoredEntry, undone: &HashMap<RunId, RunId>) -> ChangedRun {
    let files = entry.changes.iter().map(|change| &change.path).collect::<BTreeSet<_>>().len();
    let mut calls: Vec<ChangedCall> = Vec::new();
    let mut seen = BTreeSet::new();
    for change in entry.changes {
        if !seen.insert((change.call.clone(), change.path.clone())) {
            continue;
        }
        match calls.iter_mut().find(|call| call.id == change.call) {
            Some(call) => call.paths.push(change.path),
            None => calls.push(ChangedCall { id: change.call, tool: change.tool, paths: vec![change.path] }),
        }
    }
    let undone_by = undone.get(&entry.head.run).cloned();
    ChangedRun { head: entry.head, calls, files, undone_by }
}

/// Returns the runs that were taken back, each with the undo that did it. `heads` are those of all entries, the newest
/// first. An undo that was taken back itself, or that was interrupted, does not count.
fn undone(journal: &Journal, heads: &[EntryHead]) -> HashMap<RunId, RunId> {
    let mut undone = HashMap::new();
    for head in heads {
        if let Some(Undoes { run, call }) = &head.undoes
            && call.is_empty()
            && !undone.contains_key(&head.run)
            && journal.is_complete(&head.run)
        {
            undone.insert(run.clone(), head.run.clone());
        }
    }
    undone
}

/// A shell may name a directory by a path with links, and the journal has none.
#[expect(clippy::disallowed_methods, reason = "the path is only compared with those of the journal")]
fn without_links(dir: &Path) -> PathBuf {
    std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned())
}

/// Returns true if one directory is the other or has it in it.
fn is_related(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The entry that is to be taken back.
struct FoundEntry {
    entry: StoredEntry,
    /// If only one is meant.
    call: Option<String>,
    passed_over: Option<PassedOver>,
}

impl FoundEntry {
    fn new(entry: StoredEntry, call: Option<String>) -> Self {
        Self { entry, call, passed_over: None }
    }
}

fn find(journal: &Journal, target: &UndoTarget) -> Result<FoundEntry, UndoError> {
    match target {
        UndoTarget::Run(text) => Ok(FoundEntry::new(journal.read(&journal.resolve(text)?)?, None)),
        UndoTarget::Last(dir) => {
            let real = without_links(dir);
            let heads = journal.heads()?;
            let undone = undone(journal, &heads);
            let runs = heads.iter().filter(|head| {
                head.undoes.is_none() && !undone.contains_key(&head.run) && is_related(&head.dir, &real)
            });
            let mut passed_over = None;
            for head in runs {
                let entry = journal.read(&head.run)?;
                if entry.has_changes() {
                    return Ok(FoundEntry { entry, call: None, passed_over });
                }
                let has_unrecorded = entry.has_unrecorded;
                passed_over.get_or_insert(PassedOver { head: entry.head, has_unrecorded });
            }
            Err(UndoError::Nothing(dir.clone()))
        }
        UndoTarget::Call(text) => {
            let start = || text.chars().take(64).collect();
            for head in journal.heads()?.into_iter().take(MAX_SEARCHED) {
                let Ok(entry) = journal.read(&head.run) else { continue };
                let mut ids: Vec<&str> = entry.changes.iter().map(|change| &*change.call).collect();
                ids.retain(|id| !text.is_empty() && id.starts_with(&**text));
                ids.sort_unstable();
                ids.dedup();
                match ids[..] {
                    [] => {}
                    [id] => {
                        let id = id.to_owned();
                        return Ok(FoundEntry::new(entry, Some(id)));
                    }
                    _ => return Err(UndoError::AmbiguousCall(start())),
                }
            }
            Err(UndoError::NoCall(start()))
        }
    }
}

fn plan(
    shared: &Shared,
    target: &UndoTarget,
    progress: &dyn Fn(usize, usize),
) -> Result<(PlannedUndo, WorkDir), UndoError> {
    let journal = &shared.storage.journal;
    let FoundEntry { entry, call, passed_over } = find(journal, target)?;
    let StoredEntry { head, .. } = &entry;
    if shared.registry.has(&head.run) {
        return Err(UndoError::Active(head.run.clone()));
    }
    let work_dir = WorkDir::new(&head.dir, &shared.storage.home)?;
    if !work_dir.is_at(&head.dir, &head.id) {
        return Err(UndoError::OtherDirectory(head.dir.clone()));
    }
    let plan = UndoPlan::new(&work_dir, journal, &entry, call.as_deref(), progress)?;
    Ok((PlannedUndo { head: entry.head, call, plan, passed_over }, work_dir))
}

fn carry_out(
    shared: &Shared,
    target: &UndoTarget,
    token: &str,
    report: &mut dyn FnMut(Restored),
) -> Result<(), UndoError> {
    let journal = &shared.storage.journal;
    let (PlannedUndo { head, call, plan, .. }, work_dir) = plan(shared, target, &|_, _| {})?;
    if plan.token() != token {
        return Err(UndoError::Stale);
    }
    let undoes = Undoes { run: head.run.clone(), call: call.unwrap_or_default() };
    let own = EntryHead { run: RunId::new(), at: unix_millis(), undoes: Some(undoes), ..head };
    let work_dir = work_dir.recorded(journal, own);
    // One that has left something can be done again, so it does not count as an undo of the run.
    if plan.carry_out(&work_dir, journal, report).map_err(UndoError::NotSynced)? {
        work_dir.complete_entry()?;
    }
    Ok(())
}
