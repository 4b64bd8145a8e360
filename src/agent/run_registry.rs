//! The runs that are going, for those who are not at their other end: who decides on a call, or stops a run,
//! from another place than the run was started from.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use tokio::sync::mpsc;

use crate::core::{CallId, Cancel, RunId, SessionId};

use super::protocol::{Command, ProposedCall};

/// Calls of a run that wait for a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingApproval {
    pub run: RunId,
    pub session: SessionId,
    pub agent: String,
    /// In model order; what is decided is not among them any more.
    pub calls: Vec<ProposedCall>,
    pub since: SystemTime,
}

/// All runs that are going.
#[derive(Default)]
pub(super) struct RunRegistry {
    runs: Mutex<HashMap<RunId, Entry>>,
}

struct Entry {
    /// Weak, so that a run's own client can still close it.
    commands: mpsc::WeakSender<Command>,
    cancel: Cancel,
    waiting: Option<PendingApproval>,
}

impl RunRegistry {
    pub(super) fn begin(&self, run: RunId, commands: &mpsc::Sender<Command>, cancel: Cancel) {
        self.lock().insert(run, Entry { commands: commands.downgrade(), cancel, waiting: None });
    }

    pub(super) fn end(&self, run: &RunId) {
        self.lock().remove(run);
    }

    /// Notes that calls wait, beside those that wait already: workers ask through their parent.
    pub(super) fn wait(&self, waiting: PendingApproval) {
        if let Some(entry) = self.lock().get_mut(&waiting.run) {
            match &mut entry.waiting {
                Some(others) => others.calls.extend(waiting.calls),
                none => *none = Some(waiting),
            }
        }
    }

    /// Notes that a call waits no more.
    pub(super) fn decided(&self, run: &RunId, call: &CallId) {
        if let Some(entry) = self.lock().get_mut(run)
            && let Some(waiting) = &mut entry.waiting
        {
            waiting.calls.retain(|proposed| proposed.call.id != *call);
            if waiting.calls.is_empty() {
                entry.waiting = None;
            }
        }
    }

    /// Notes that no call of the run waits any more.
    pub(super) fn settled(&self, run: &RunId) {
        if let Some(entry) = self.lock().get_mut(run) {
            entry.waiting = None;
        }
    }

    /// Passes a decision on, if the call waits for one.
    pub(super) fn decide(&self, run: &RunId, call: &CallId, command: Command) -> bool {
        let commands = {
            let runs = self.lock();
            let entry = runs.get(run).filter(|entry| {
                let waiting = entry.waiting.as_ref();
                waiting.is_some_and(|waiting| waiting.calls.iter().any(|one| one.call.id == *call))
            });
            entry.and_then(|entry| entry.commands.upgrade())
        };
        commands.is_some_and(|commands| commands.try_send(command).is_ok())
    }

    pub(super) fn cancel(&self, run: &RunId) -> bool {
        let cancel = self.lock().get(run).map(|entry| entry.cancel.clone());
        cancel.map(|cancel| cancel.cancel()).is_some()
    }

    /// What waits, oldest first.
    pub(super) fn waiting(&self) -> Vec<PendingApproval> {
        let mut all: Vec<PendingApproval> =
            self.lock().values().filter_map(|entry| entry.waiting.clone()).collect();
        all.sort_by_key(|waiting| waiting.since);
        all
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
