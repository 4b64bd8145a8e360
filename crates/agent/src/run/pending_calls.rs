//! The calls of one run that wait for a decision.

use std::time::SystemTime;

use tokio::sync::mpsc;

use kontekst_core::{CallId, Mutex, RunId, SessionId};

use super::protocol::{Command, ProposedCall};

/// The calls of one run that wait for a decision, as other clients see them.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingApproval {
    pub run: RunId,
    pub session: SessionId,
    pub agent: String,
    /// The undecided calls, in the model's order.
    pub calls: Vec<ProposedCall>,
    /// The time at which the first of them was proposed.
    pub since: SystemTime,
}

/// The calls of one run that wait for a decision.
///
/// Every decision goes through [`PendingCalls::decide`], no matter whether it comes from the client of the run or from
/// somebody else. So each call takes exactly one, and everybody else is told that it came too late.
#[derive(Default)]
pub(crate) struct PendingCalls(Mutex<Option<PendingApproval>>);

impl PendingCalls {
    /// Adds calls. Subagents ask through their parent, so others may already wait.
    pub(crate) fn add(&self, added: PendingApproval) {
        match &mut *self.0.lock() {
            Some(pending) => pending.calls.extend(added.calls),
            none => *none = Some(added),
        }
    }

    /// Passes a decision on to the run. Returns false if the call does not wait for one, or if the run takes no more
    /// commands.
    pub(crate) fn decide(
        &self,
        call: &CallId,
        command: Command,
        commands: &mpsc::UnboundedSender<Command>,
    ) -> bool {
        // The lock is held while the command is sent, so that two deciders cannot both find the call waiting.
        let mut pending = self.0.lock();
        let waits =
            pending.as_ref().is_some_and(|pending| pending.calls.iter().any(|one| one.call.id == *call));
        let taken = waits && commands.send(command).is_ok();
        if taken {
            remove(&mut pending, call);
        }
        taken
    }

    /// Removes a call that will not be decided.
    pub(crate) fn remove(&self, call: &CallId) {
        remove(&mut self.0.lock(), call);
    }

    pub(crate) fn clear(&self) {
        *self.0.lock() = None;
    }

    /// Returns the waiting calls, or `None` if none waits.
    pub(crate) fn snapshot(&self) -> Option<PendingApproval> {
        self.0.lock().clone()
    }
}

fn remove(pending: &mut Option<PendingApproval>, call: &CallId) {
    if let Some(PendingApproval { calls, .. }) = pending {
        calls.retain(|proposed| proposed.call.id != *call);
        if calls.is_empty() {
            *pending = None;
        }
    }
}
