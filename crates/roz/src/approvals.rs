//! Calls of the daemon's own tools that need the client's approval. The client is asked about one at a time.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use kontekst_agent::protocol::{AfterDenial, Command, Decision, ProposedCall};
use kontekst_core::CallId;
use kontekst_pb::roz::PermissionDecision;

use super::{
    server_event::{Activity, ServerEvent},
    structs,
};

/// The time in which the client must decide. Source: the time that the second generation's server waits for the
/// approval of a nested call.
pub(super) const APPROVAL_TIMEOUT: Duration = Duration::from_secs(300);

/// The longest preview that is shown, in characters.
const MAX_PREVIEW_CHARS: usize = 4096;

/// The calls of a run that wait for approval.
#[derive(Default)]
pub(super) struct Approvals {
    queue: VecDeque<QueuedApproval>,
    /// The call that the client is asked about now.
    open: Option<OpenApproval>,
}

struct QueuedApproval {
    /// The id of the call on the wire.
    wire_id: String,
    proposed: ProposedCall,
}

struct OpenApproval {
    wire_id: String,
    call: CallId,
    tool: String,
    /// `None` once a decision was sent to the run.
    deadline: Option<Instant>,
}

impl Approvals {
    pub(super) fn add(&mut self, wire_id: String, proposed: ProposedCall) {
        self.queue.push_back(QueuedApproval { wire_id, proposed });
    }

    /// Returns when the call that the client is asked about counts as denied. `None` if no decision is waited for.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.as_ref()?.deadline
    }

    /// Asks about the next call, unless the client is being asked about one.
    pub(super) fn ask_next(&mut self, out: &mut Vec<ServerEvent>) {
        if self.open.is_some() {
            return;
        }
        let Some(QueuedApproval { wire_id, proposed }) = self.queue.pop_front() else { return };
        let tool = proposed.call.name;
        out.push(ServerEvent::activity(Activity::CallingTool, tool.clone()));
        out.push(ServerEvent::activity(Activity::WaitingApproval, wire_id.clone()));
        let reason: String = match proposed.caution.or(proposed.asked_by) {
            Some(caution) => format!("{caution}\n\n{}", proposed.preview),
            None => proposed.preview,
        };
        out.push(ServerEvent::ApprovalRequested {
            call_id: wire_id.clone(),
            tool: tool.clone(),
            reason: reason.trim().chars().take(MAX_PREVIEW_CHARS).collect(),
            timeout_secs: APPROVAL_TIMEOUT.as_secs(),
        });
        let deadline = Some(Instant::now() + APPROVAL_TIMEOUT);
        self.open = Some(OpenApproval { wire_id, call: proposed.call.id, tool, deadline });
    }

    /// Takes the client's decision and returns the command for the run. A decision on any call but the one that
    /// the client is asked about is ignored.
    pub(super) fn decide(&mut self, decision: PermissionDecision) -> Option<Command> {
        self.open.as_ref().filter(|open| open.wire_id == decision.tool_call_id)?;
        let changed_arguments =
            decision.modifier.map(structs::to_json).filter(|arguments| !arguments.is_empty());
        match changed_arguments {
            None if decision.approved => self.undecided().map(|open| Command::Approve(open.call.clone())),
            // An approval is only for the call that was shown. The model reads what the user wants and can propose
            // that call, which is then shown as well.
            Some(arguments) if decision.approved => {
                let arguments = serde_json::Value::Object(arguments);
                self.deny_open(&format!("; the user wants these arguments instead: {arguments}"))
            }
            _ => self.deny_open(""),
        }
    }

    /// Returns the command that denies the call that the client is asked about. `because` is added to the reason that
    /// the model reads.
    pub(super) fn deny_open(&mut self, because: &str) -> Option<Command> {
        let open = self.undecided()?;
        let reason = format!("Permission denied by user for: {}{because}", open.tool);
        Some(Command::Deny { call: open.call.clone(), reason, then: AfterDenial::Continue })
    }

    /// Removes a call that has its decision, from this client or from another one.
    pub(super) fn resolve(&mut self, call: &CallId, decision: Decision, out: &mut Vec<ServerEvent>) {
        let denial_reason = match decision {
            Decision::Approved => None,
            Decision::Denied(reason) => Some(reason),
            Decision::Withdrawn => Some("the worker has ended".to_owned()),
        };
        match self.open.take_if(|open| open.call == *call) {
            Some(open) => out.push(ServerEvent::ApprovalResolved { call_id: open.wire_id, denial_reason }),
            // The client has not been asked about it.
            None => self.queue.retain(|queued| queued.proposed.call.id != *call),
        }
    }

    /// Returns the call that the client is asked about, for the one decision that may be sent to the run.
    fn undecided(&mut self) -> Option<&OpenApproval> {
        let open = self.open.as_mut()?;
        open.deadline.take()?;
        Some(open)
    }
}
