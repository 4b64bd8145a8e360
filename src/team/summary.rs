//! A log as a list of workers.

use super::{Exit, TeamEvent, WorkerEvent};
use crate::core::SessionId;

/// What became of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub id: SessionId,
    pub parent: SessionId,
    pub agent: String,
    /// Its start.
    pub prompt: String,
    pub depth: u32,
    /// Unix time in milliseconds.
    pub started: u64,
    /// `None` while it runs.
    pub exit: Option<Exit>,
    pub turns: u32,
    pub tool_calls: u32,
    /// Why it failed.
    pub failure: Option<String>,
}

/// The workers of a log in the order in which they started. Those whose beginning was dropped are left out.
pub fn workers(events: &[TeamEvent]) -> Vec<Worker> {
    let mut workers: Vec<Worker> = Vec::new();
    for event in events {
        if let WorkerEvent::Started { agent, prompt, depth } = &event.what {
            workers.push(Worker {
                id: event.worker.clone(),
                parent: event.parent.clone(),
                agent: agent.clone(),
                prompt: prompt.clone(),
                depth: *depth,
                started: event.at,
                exit: None,
                turns: 0,
                tool_calls: 0,
                failure: None,
            });
        }
        let Some(worker) = workers.iter_mut().find(|worker| worker.id == event.worker) else { continue };
        match &event.what {
            WorkerEvent::Turn { number } => worker.turns = *number,
            WorkerEvent::ToolCall { .. } => worker.tool_calls += 1,
            WorkerEvent::Failed { message, .. } => worker.failure = Some(message.clone()),
            WorkerEvent::Exited { how } => worker.exit = Some(*how),
            WorkerEvent::Started { .. }
            | WorkerEvent::ApprovalRequested { .. }
            | WorkerEvent::ApprovalResolved { .. }
            | WorkerEvent::Completed { .. } => {}
        }
    }
    workers
}
