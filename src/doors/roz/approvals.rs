//! The daemon's own calls that wait for the client's word: asked about one at a time.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::{
    agent::protocol::{AfterDenial, Command, ProposedCall},
    core::CallId,
    pb::roz::PermissionDecision,
};

use super::{
    news::{Activity, News},
    structs,
};

/// How long a client may think. Source: what the second generation's server waits for a nested approval.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// Characters of a preview that are shown.
const SHOWN: usize = 4096;

/// Calls that wait, and the one that is asked about.
#[derive(Default)]
pub(super) struct Approvals {
    waiting: VecDeque<Waiting>,
    asked: Option<Asked>,
}

struct Waiting {
    /// Its id on the wire.
    id: String,
    proposed: ProposedCall,
}

struct Asked {
    id: String,
    call: CallId,
    tool: String,
    until: Instant,
}

impl Approvals {
    pub(super) fn add(&mut self, id: String, proposed: ProposedCall) {
        self.waiting.push_back(Waiting { id, proposed });
    }

    /// When the one that is asked about counts as denied.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.asked.as_ref().map(|asked| asked.until)
    }

    /// Asks about the next call, if none is asked about.
    pub(super) fn ask(&mut self, out: &mut Vec<News>) {
        if self.asked.is_some() {
            return;
        }
        let Some(Waiting { id, proposed }) = self.waiting.pop_front() else { return };
        let tool = proposed.call.name;
        out.push(News::Activity { state: Activity::CallingTool, detail: tool.clone(), progress: None });
        out.push(News::Activity { state: Activity::WaitingApproval, detail: id.clone(), progress: None });
        let reason: String = match proposed.caution {
            Some(caution) => format!("{caution}\n\n{}", proposed.preview),
            None => proposed.preview,
        };
        out.push(News::ApprovalRequested {
            call: id.clone(),
            tool: tool.clone(),
            reason: reason.trim().chars().take(SHOWN).collect(),
            timeout_secs: PATIENCE.as_secs(),
        });
        self.asked = Some(Asked { id, call: proposed.call.id, tool, until: Instant::now() + PATIENCE });
    }

    /// The client's word on a call; `None` when it is not the one that is asked about.
    pub(super) fn decide(&mut self, decision: PermissionDecision, out: &mut Vec<News>) -> Option<Command> {
        let asked = self.asked.take_if(|asked| asked.id == decision.tool_call_id)?;
        let wanted = decision.modifier.map(structs::json).filter(|wanted| !wanted.is_empty());
        match wanted {
            None if decision.approved => {
                out.push(News::ApprovalResolved { call: asked.id, denied: None });
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
    pub(super) fn expire(&mut self, out: &mut Vec<News>) -> Option<Command> {
        let asked = self.asked.take_if(|asked| asked.until <= Instant::now())?;
        Some(asked.deny("; there was no answer in time", out))
    }

    /// Nobody will answer any more.
    pub(super) fn deny_all(&mut self, out: &mut Vec<News>) -> Vec<Command> {
        let mut commands = Vec::new();
        loop {
            self.ask(out);
            let Some(asked) = self.asked.take() else { return commands };
            commands.push(asked.deny("; the client has closed its side", out));
        }
    }
}

impl Asked {
    fn deny(self, because: &str, out: &mut Vec<News>) -> Command {
        let reason = format!("Permission denied by user for: {}{because}", self.tool);
        out.push(News::ApprovalResolved { call: self.id, denied: Some(reason.clone()) });
        Command::Deny { call: self.call, reason, then: AfterDenial::Continue }
    }
}
