//! The events of a subagent as messages of `kontekst.AgentService`.

use kontekst_store::subagent_log::{SubagentEvent, SubagentEventKind};

use super::{WorkerEvent, worker_event::Event};

impl From<SubagentEvent> for WorkerEvent {
    fn from(event: SubagentEvent) -> Self {
        Self {
            seq: event.seq,
            at_ms: i64::try_from(event.at).unwrap_or(i64::MAX),
            worker_id: event.subagent.to_string(),
            parent_id: event.parent.to_string(),
            event: Some(event.kind.into()),
        }
    }
}

impl From<SubagentEventKind> for Event {
    fn from(kind: SubagentEventKind) -> Self {
        match kind {
            SubagentEventKind::Started { agent, prompt, depth } => {
                Self::Started(super::WorkerStarted { agent_name: agent, prompt, depth })
            }
            SubagentEventKind::Turn { number } => Self::Turn(super::WorkerTurn { number }),
            SubagentEventKind::ToolCall { tool } => Self::ToolCall(super::WorkerToolCall { tool }),
            SubagentEventKind::ApprovalRequested { call, tool } => {
                Self::ApprovalRequested(super::WorkerApprovalRequested { call_id: call.to_string(), tool })
            }
            SubagentEventKind::ApprovalResolved { call, approved } => {
                Self::ApprovalResolved(super::WorkerApprovalResolved { call_id: call.to_string(), approved })
            }
            SubagentEventKind::Completed { result } => Self::Completed(super::WorkerCompleted { result }),
            SubagentEventKind::Failed { cause, message } => {
                Self::Failed(super::WorkerFailed { cause: cause.as_str().to_owned(), message })
            }
            SubagentEventKind::Exited { how } => {
                Self::Exited(super::WorkerExited { how: how.as_str().to_owned() })
            }
        }
    }
}
