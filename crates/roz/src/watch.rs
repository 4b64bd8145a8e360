//! `WatchTeam`: reports what the subagents of a session have done so far, and then what they do.

use std::{collections::HashSet, sync::Arc};

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use uuid::Uuid;

use kontekst_agent::AgentCore;
use kontekst_core::{Mutex, SessionId};
use kontekst_pb::roz::{self as pb, team_event::Event as Pb};
use kontekst_store::subagent_log::{FailureCause, SubagentEvent, SubagentEventKind};

/// Events that may wait for a slow watcher. Further events are read from the log once there is room.
const QUEUED_EVENTS: usize = 64;

/// The open sessions of this door. They can be watched before they have subagents.
#[derive(Clone, Default)]
pub(super) struct OpenSessions(Arc<Mutex<HashSet<SessionId>>>);

/// Removes its session from [`OpenSessions`] when dropped.
pub(super) struct OpenSessionGuard {
    open_sessions: OpenSessions,
    id: SessionId,
}

impl OpenSessions {
    pub(super) fn insert(&self, id: SessionId) -> OpenSessionGuard {
        self.0.lock().insert(id.clone());
        OpenSessionGuard { open_sessions: self.clone(), id }
    }
}

impl Drop for OpenSessionGuard {
    fn drop(&mut self) {
        self.open_sessions.0.lock().remove(&self.id);
    }
}

/// Finds the session that a client names.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for a text that is not an id, `NOT_FOUND` if there is no such session. Source of the codes and
/// messages: the published service, where all tasks are UUIDs. Sessions here may also have names.
pub(super) async fn parse_task_id(
    core: &AgentCore,
    open: &OpenSessions,
    task: &str,
) -> Result<SessionId, Status> {
    let invalid = || Status::invalid_argument("task_id is not a valid UUID");
    let id: SessionId = task.parse().map_err(|_| invalid())?;
    let is_open = open.0.lock().contains(&id);
    if is_open || core.has_session(&id).await {
        return Ok(id);
    }
    if Uuid::parse_str(task).is_ok() { Err(Status::not_found("task not found")) } else { Err(invalid()) }
}

/// Streams all events of a team, the oldest first. Ends when the client disconnects or the daemon stops.
pub(super) fn watch(core: AgentCore, team: SessionId) -> ReceiverStream<Result<pb::TeamEvent, Status>> {
    let (sender, events) = mpsc::channel(QUEUED_EVENTS);
    tokio::spawn(async move {
        let mut watch = core.watch_subagents(&team, 0);
        loop {
            let event = tokio::select! {
                biased;
                () = core.stopped() => return,
                () = sender.closed() => return,
                event = watch.next() => event,
            };
            let sent = match event {
                Ok(event) => match convert(event, &team) {
                    Some(event) => sender.send(Ok(event)).await.is_ok(),
                    None => true,
                },
                Err(error) => {
                    sender.send(Err(Status::internal(error.message))).await.ok();
                    false
                }
            };
            if !sent {
                return;
            }
        }
    });
    ReceiverStream::new(events)
}

/// Converts an event, or returns `None` if this protocol has no such event. Pure.
fn convert(event: SubagentEvent, team: &SessionId) -> Option<pb::TeamEvent> {
    let (worker_id, task_id) = (event.subagent.to_string(), team.to_string());
    let event = match event.kind {
        SubagentEventKind::Started { .. } => {
            Pb::WorkerStarted(pb::WorkerStarted { worker_id, host_id: "local".to_owned() })
        }
        SubagentEventKind::Turn { number } => {
            Pb::WorkerPhase(pb::WorkerPhase { worker_id, phase: number, mode: "react".to_owned() })
        }
        SubagentEventKind::ToolCall { tool } => Pb::WorkerToolCall(pb::WorkerToolCall { worker_id, tool }),
        SubagentEventKind::ApprovalRequested { call, tool } => {
            Pb::WorkerApprovalRequested(pb::WorkerApprovalRequested {
                worker_id,
                task_id,
                approval_id: call.to_string(),
                tool_name: tool,
                reason: String::new(),
                timeout_secs: super::approvals::APPROVAL_TIMEOUT.as_secs(),
            })
        }
        SubagentEventKind::ApprovalResolved { call, approved } => {
            Pb::WorkerApprovalResolved(pb::WorkerApprovalResolved {
                worker_id,
                task_id,
                approval_id: call.to_string(),
                approved,
                modifier: None,
            })
        }
        SubagentEventKind::Completed { result } => {
            Pb::WorkerCompleted(pb::WorkerCompleted { worker_id, result })
        }
        SubagentEventKind::Failed { cause, .. } => {
            let reason = match cause {
                FailureCause::Budget => "timeout",
                FailureCause::Model | FailureCause::Other => "model_error",
                // None of the published reasons fits a denial. A cancelled subagent has no failure event either.
                FailureCause::Denied => return None,
            };
            Pb::WorkerFailed(pb::WorkerFailed { worker_id, reason: reason.to_owned() })
        }
        SubagentEventKind::Exited { .. } => {
            Pb::WorkerExited(pb::WorkerExited { worker_id, parent_task_id: event.parent.to_string() })
        }
    };
    Some(pb::TeamEvent { event: Some(event) })
}

#[cfg(test)]
mod tests {
    use kontekst_core::CallId;
    use kontekst_store::subagent_log::SubagentExit;

    use super::*;

    #[test]
    fn events_are_converted_and_failure_reasons_are_the_published_ones() {
        let (team, worker): (SessionId, SessionId) = ("t".parse().unwrap(), "w".parse().unwrap());
        let converted = |what| {
            let event =
                SubagentEvent { seq: 1, at: 0, subagent: worker.clone(), parent: team.clone(), kind: what };
            convert(event, &team).map(|event| format!("{:?}", event.event.unwrap()))
        };
        let failed = |cause| converted(SubagentEventKind::Failed { cause, message: "m".to_owned() });
        assert!(failed(FailureCause::Budget).unwrap().contains("\"timeout\""));
        assert!(failed(FailureCause::Model).unwrap().contains("\"model_error\""));
        assert!(failed(FailureCause::Other).unwrap().contains("\"model_error\""));
        assert_eq!(failed(FailureCause::Denied), None);
        let phase = converted(SubagentEventKind::Turn { number: 3 }).unwrap();
        assert!(phase.contains("phase: 3") && phase.contains("\"react\""), "{phase}");
        let exited = converted(SubagentEventKind::Exited { how: SubagentExit::Cancelled }).unwrap();
        assert!(exited.contains("parent_task_id: \"t\"") && exited.contains("worker_id: \"w\""), "{exited}");
        let call = CallId::new("c");
        let asked =
            converted(SubagentEventKind::ApprovalRequested { call: call.clone(), tool: "bash".to_owned() });
        assert!(asked.unwrap().contains("approval_id: \"c\""));
        assert!(
            converted(SubagentEventKind::ApprovalResolved { call, approved: true })
                .unwrap()
                .contains("approved: true")
        );
    }
}
