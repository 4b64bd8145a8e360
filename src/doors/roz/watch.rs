//! `WatchTeam`: what the workers of a session did, then what they do.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use uuid::Uuid;

use crate::{
    agent::AgentCore,
    core::SessionId,
    pb::roz::{self as pb, team_event::Event as Pb},
    subagent_log::{FailureCause, SubagentEvent, SubagentEventKind},
};

/// Events that may wait for a watcher; behind them is the log, which costs nothing.
const QUEUED_EVENTS: usize = 64;

/// The sessions of this door that are open: they can be watched before they have workers.
#[derive(Clone, Default)]
pub(super) struct OpenSessions(Arc<Mutex<HashSet<SessionId>>>);

/// An entry in [`Live`], for as long as it is held.
pub(super) struct OpenSessionGuard {
    open_sessions: OpenSessions,
    id: SessionId,
}

impl OpenSessions {
    pub(super) fn insert(&self, id: SessionId) -> OpenSessionGuard {
        self.lock().insert(id.clone());
        OpenSessionGuard { open_sessions: self.clone(), id }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenSessionGuard {
    fn drop(&mut self) {
        self.open_sessions.lock().remove(&self.id);
    }
}

/// The session that a client means.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for what is no id, `NOT_FOUND` where there is no such session. Source of the codes and
/// words: the published service, where tasks are UUIDs; sessions here may also have names.
pub(super) fn parse_task_id(core: &AgentCore, live: &OpenSessions, task: &str) -> Result<SessionId, Status> {
    let invalid = || Status::invalid_argument("task_id is not a valid UUID");
    let id: SessionId = task.parse().map_err(|_| invalid())?;
    if live.lock().contains(&id) || core.has_session(&id) {
        return Ok(id);
    }
    if Uuid::parse_str(task).is_ok() { Err(Status::not_found("task not found")) } else { Err(invalid()) }
}

/// All events of a team, the first ones first. Ends when the client leaves or the daemon stops.
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

/// `None` for what this protocol has no word for. Pure.
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
                // As for one that was cancelled: none of the published reasons is true.
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
    use crate::{core::CallId, subagent_log::SubagentExit};

    use super::*;

    #[test]
    fn every_event_that_has_a_word_is_told_and_reasons_are_the_published_ones() {
        let (team, worker): (SessionId, SessionId) = ("t".parse().unwrap(), "w".parse().unwrap());
        let told = |what| {
            let event =
                SubagentEvent { seq: 1, at: 0, subagent: worker.clone(), parent: team.clone(), kind: what };
            convert(event, &team).map(|event| format!("{:?}", event.event.unwrap()))
        };
        let failed = |cause| told(SubagentEventKind::Failed { cause, message: "m".to_owned() });
        assert!(failed(FailureCause::Budget).unwrap().contains("\"timeout\""));
        assert!(failed(FailureCause::Model).unwrap().contains("\"model_error\""));
        assert!(failed(FailureCause::Other).unwrap().contains("\"model_error\""));
        assert_eq!(failed(FailureCause::Denied), None);
        let phase = told(SubagentEventKind::Turn { number: 3 }).unwrap();
        assert!(phase.contains("phase: 3") && phase.contains("\"react\""), "{phase}");
        let exited = told(SubagentEventKind::Exited { how: SubagentExit::Cancelled }).unwrap();
        assert!(exited.contains("parent_task_id: \"t\"") && exited.contains("worker_id: \"w\""), "{exited}");
        let call = CallId::new("c");
        let asked =
            told(SubagentEventKind::ApprovalRequested { call: call.clone(), tool: "bash".to_owned() });
        assert!(asked.unwrap().contains("approval_id: \"c\""));
        assert!(
            told(SubagentEventKind::ApprovalResolved { call, approved: true })
                .unwrap()
                .contains("approved: true")
        );
    }
}
