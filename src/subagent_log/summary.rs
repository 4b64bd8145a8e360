//! A log as a list of workers.

use super::{SubagentEvent, SubagentEventKind, SubagentExit};
use crate::core::SessionId;

/// What became of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentSummary {
    pub id: SessionId,
    pub parent: SessionId,
    pub agent: String,
    /// Its start.
    pub prompt: String,
    pub depth: u32,
    /// Unix time in milliseconds.
    pub started: u64,
    /// `None` while it runs.
    pub exit: Option<SubagentExit>,
    pub turns: u32,
    pub tool_calls: u32,
    /// Why it failed.
    pub failure: Option<String>,
}

/// The workers of a log in the order in which they started. Those whose beginning was dropped are left out.
pub fn summarize(events: &[SubagentEvent]) -> Vec<SubagentSummary> {
    let mut summaries: Vec<SubagentSummary> = Vec::new();
    for event in events {
        if let SubagentEventKind::Started { agent, prompt, depth } = &event.kind {
            summaries.push(SubagentSummary {
                id: event.subagent.clone(),
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
        let Some(worker) = summaries.iter_mut().find(|worker| worker.id == event.subagent) else { continue };
        match &event.kind {
            SubagentEventKind::Turn { number } => worker.turns = *number,
            SubagentEventKind::ToolCall { .. } => worker.tool_calls += 1,
            SubagentEventKind::Failed { message, .. } => worker.failure = Some(message.clone()),
            SubagentEventKind::Exited { how } => worker.exit = Some(*how),
            SubagentEventKind::Started { .. }
            | SubagentEventKind::ApprovalRequested { .. }
            | SubagentEventKind::ApprovalResolved { .. }
            | SubagentEventKind::Completed { .. } => {}
        }
    }
    summaries
}
