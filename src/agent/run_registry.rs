//! The runs in progress, for clients that did not start them: they may decide on a call or cancel a run.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use tokio::sync::mpsc;

use crate::core::{CallId, Cancel, RunId, SessionId};

use super::protocol::{Command, ProposedCall};

/// The calls of one run that wait for a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingApproval {
    pub run: RunId,
    pub session: SessionId,
    pub agent: String,
    /// The undecided calls, in the model's order.
    pub calls: Vec<ProposedCall>,
    /// When the first of them was proposed.
    pub since: SystemTime,
}

/// All runs in progress.
#[derive(Default)]
pub(super) struct RunRegistry {
    /// The runs that clients started. Subagents are not listed.
    runs: Mutex<HashMap<RunId, Entry>>,
    /// Counts all runs, including those of subagents.
    active: AtomicUsize,
    /// Cancels every run.
    stop: Cancel,
}

struct Entry {
    /// Weak, so that the run's own client can still close the run's inbox.
    commands: mpsc::WeakSender<Command>,
    cancel: Cancel,
    pending: Option<PendingApproval>,
}

impl RunRegistry {
    pub(super) fn stop_signal(&self) -> &Cancel {
        &self.stop
    }

    pub(super) fn active_runs(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Adds one to the number of active runs. [`RunRegistry::remove`] takes it back.
    pub(super) fn increment(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn insert(&self, run: RunId, commands: mpsc::WeakSender<Command>, cancel: Cancel) {
        self.lock().insert(run, Entry { commands, cancel, pending: None });
    }

    pub(super) fn remove(&self, run: &RunId) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        self.lock().remove(run);
    }

    /// Adds calls that wait for a decision. Subagents ask through their parent, so others may already wait.
    pub(super) fn add_pending(&self, added: PendingApproval) {
        if let Some(entry) = self.lock().get_mut(&added.run) {
            match &mut entry.pending {
                Some(pending) => pending.calls.extend(added.calls),
                none => *none = Some(added),
            }
        }
    }

    /// Removes a call that has been decided.
    pub(super) fn remove_pending(&self, run: &RunId, call: &CallId) {
        if let Some(entry) = self.lock().get_mut(run)
            && let Some(pending) = &mut entry.pending
        {
            pending.calls.retain(|proposed| proposed.call.id != *call);
            if pending.calls.is_empty() {
                entry.pending = None;
            }
        }
    }

    /// Removes all waiting calls of a run.
    pub(super) fn clear_pending(&self, run: &RunId) {
        if let Some(entry) = self.lock().get_mut(run) {
            entry.pending = None;
        }
    }

    /// Sends a decision to the run. Returns false if the call does not wait for one.
    pub(super) fn decide(&self, run: &RunId, call: &CallId, command: Command) -> bool {
        let commands = {
            let runs = self.lock();
            let entry = runs.get(run).filter(|entry| {
                let pending = entry.pending.as_ref();
                pending.is_some_and(|pending| pending.calls.iter().any(|one| one.call.id == *call))
            });
            entry.and_then(|entry| entry.commands.upgrade())
        };
        commands.is_some_and(|commands| commands.try_send(command).is_ok())
    }

    /// Cancels a run. Returns false if it is not in progress.
    pub(super) fn cancel(&self, run: &RunId) -> bool {
        let cancel = self.lock().get(run).map(|entry| entry.cancel.clone());
        cancel.map(|cancel| cancel.cancel()).is_some()
    }

    /// Returns the waiting calls of all runs, oldest first.
    pub(super) fn pending_approvals(&self) -> Vec<PendingApproval> {
        let mut all: Vec<PendingApproval> =
            self.lock().values().filter_map(|entry| entry.pending.clone()).collect();
        all.sort_by_key(|pending| pending.since);
        all
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
