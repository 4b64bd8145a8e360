//! The decisions that the client of a stream made itself, which it is not told about.

use std::collections::HashMap;

use kontekst_agent::protocol::{Command, Decision, Event};
use kontekst_core::CallId;

/// The proposed calls that wait for a decision, each with the first decision that this client sent.
#[derive(Default)]
pub(super) struct OwnDecisions {
    calls: HashMap<CallId, Option<bool>>,
}

impl OwnDecisions {
    /// Remembers a decision of the client. Decisions on calls that do not wait are ignored, so that the memory is
    /// bounded by what was proposed.
    pub(super) fn add(&mut self, command: &Command) {
        let (call, approved) = match command {
            Command::Approve(call) | Command::ApproveAlways(call) => (call, true),
            Command::Deny { call, .. } | Command::Park(call) => (call, false),
            Command::ToolResult { .. } => return,
        };
        if let Some(decision) = self.calls.get_mut(call) {
            decision.get_or_insert(approved);
        }
    }

    /// Returns true if the event tells the client nothing but its own decision. Has to see all events.
    pub(super) fn cover(&mut self, event: &Event) -> bool {
        match event {
            Event::ToolsProposed(calls) => {
                self.calls.extend(calls.iter().map(|proposed| (proposed.call.id.clone(), None)));
                false
            }
            Event::ToolDecided { call, decision } => {
                self.calls.remove(call) == Some(Some(*decision == Decision::Approved))
            }
            _ => false,
        }
    }
}
