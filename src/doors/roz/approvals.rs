//! The daemon's own calls that wait for the client's word: asked about one at a time.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::{
    agent::protocol::{AfterDenial, Command, ProposedCall},
    core::CallId,
    pb::roz::PermissionDecision,
};

use super::{
    server_event::{Activity, ServerEvent},
    structs,
};

/// How long a client may think. Source: what the second generation's server waits for a nested approval.
pub(super) const APPROVAL_TIMEOUT: Duration = Duration::from_secs(300);

/// Characters of a preview that are shown.
const MAX_PREVIEW_CHARS: usize = 4096;

/// Calls that wait, and the one that is asked about.
#[derive(Default)]
pub(super) struct Approvals {
    queue: VecDeque<QueuedApproval>,
    open: Option<OpenApproval>,
}

struct QueuedApproval {
    /// Its id on the wire.
    id: String,
    proposed: ProposedCall,
}

struct OpenApproval {
    id: String,
    call: CallId,
    tool: String,
    deadline: Instant,
}

impl Approvals {
    pub(super) fn add(&mut self, id: String, proposed: ProposedCall) {
        self.queue.push_back(QueuedApproval { id, proposed });
    }

    /// When the one that is asked about counts as denied.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.as_ref().map(|asked| asked.deadline)
    }

    /// Asks about the next call, if none is asked about.
    pub(super) fn ask_next(&mut self, out: &mut Vec<ServerEvent>) {
        if self.open.is_some() {
            return;
        }
        let Some(QueuedApproval { id, proposed }) = self.queue.pop_front() else { return };
        let tool = proposed.call.name;
        out.push(ServerEvent::Activity {
            state: Activity::CallingTool,
            detail: tool.clone(),
            progress: None,
        });
        out.push(ServerEvent::Activity {
            state: Activity::WaitingApproval,
            detail: id.clone(),
            progress: None,
        });
        let reason: String = match proposed.caution {
            Some(caution) => format!("{caution}\n\n{}", proposed.preview),
            None => proposed.preview,
        };
        out.push(ServerEvent::ApprovalRequested {
            call: id.clone(),
            tool: tool.clone(),
            reason: reason.trim().chars().take(MAX_PREVIEW_CHARS).collect(),
            timeout_secs: APPROVAL_TIMEOUT.as_secs(),
        });
        self.open = Some(OpenApproval {
            id,
            call: proposed.call.id,
            tool,
            deadline: Instant::now() + APPROVAL_TIMEOUT,
        });
    }

    /// The client's word on a call; `None` when it is not the one that is asked about.
    pub(super) fn decide(
        &mut self,
        decision: PermissionDecision,
        out: &mut Vec<ServerEvent>,
    ) -> Option<Command> {
        let asked = self.open.take_if(|asked| asked.id == decision.tool_call_id)?;
        let wanted = decision.modifier.map(structs::to_json).filter(|wanted| !wanted.is_empty());
        match wanted {
            None if decision.approved => {
                out.push(ServerEvent::ApprovalResolved { call: asked.id, denied: None });
                Some(Command::Approve(asked.call))
            }
            // An approval is for what was shown. The model can propose what is wanted, which is shown, too.
            Some(wanted) if decision.approved => {
                let wanted = serde_json::Value::Object(wanted);
                Some(asked.deny(&format!("; the user wants these arguments instead: {wanted}"), out))
            }
            _ => Some(asked.deny("", out)),
        }
    }

    /// Nobody has answered in time.
    pub(super) fn expire(&mut self, out: &mut Vec<ServerEvent>) -> Option<Command> {
        let asked = self.open.take_if(|asked| asked.deadline <= Instant::now())?;
        Some(asked.deny("; there was no answer in time", out))
    }

    /// Nobody will answer any more.
    pub(super) fn deny_all(&mut self, out: &mut Vec<ServerEvent>) -> Vec<Command> {
        let mut commands = Vec::new();
        loop {
            self.ask_next(out);
            let Some(asked) = self.open.take() else { return commands };
            commands.push(asked.deny("; the client has closed its side", out));
        }
    }
}

impl OpenApproval {
    fn deny(self, because: &str, out: &mut Vec<ServerEvent>) -> Command {
        let reason = format!("Permission denied by user for: {}{because}", self.tool);
        out.push(ServerEvent::ApprovalResolved { call: self.id, denied: Some(reason.clone()) });
        Command::Deny { call: self.call, reason, then: AfterDenial::Continue }
    }
}
