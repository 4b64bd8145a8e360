//! What is told of a worker.

use serde::{Deserialize, Serialize};

use crate::core::{CallId, SessionId};

/// Bytes of a prompt, a result or a message that are kept; the worker's own session has all of it.
const TEXT_LIMIT: usize = 4096;
/// Bytes of a tool's name that are kept: a model may have written it.
const NAME_LIMIT: usize = 64;

/// One thing that a worker did: a line of the team's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentEvent {
    /// Counts from 1 and grows by one within a team.
    pub seq: u64,
    /// Unix time in milliseconds.
    pub at: u64,
    /// The worker's own session, which is also its name.
    #[serde(rename = "worker")]
    pub subagent: SessionId,
    /// The session whose run started it.
    pub parent: SessionId,
    #[serde(flatten)]
    pub kind: SubagentEventKind,
}

/// A worker begins with `Started`, ends with `Exited`, and has both exactly once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SubagentEventKind {
    Started {
        agent: String,
        /// Its start.
        prompt: String,
        /// 1 for the worker of a client's run, 2 for a worker's worker.
        depth: u32,
    },
    /// Its model has answered, for the time of this number.
    Turn {
        number: u32,
    },
    ToolCall {
        tool: String,
    },
    ApprovalRequested {
        call: CallId,
        tool: String,
    },
    ApprovalResolved {
        call: CallId,
        approved: bool,
    },
    Completed {
        /// The start of its answer.
        result: String,
    },
    Failed {
        cause: FailureCause,
        message: String,
    },
    Exited {
        how: SubagentExit,
    },
}

/// Why a worker failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// Its turns, tokens or seconds were used up.
    Budget,
    /// A call of it was denied, and that was to be its end.
    Denied,
    /// The model or its server.
    Model,
    /// Its request or its session.
    Other,
}

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentExit {
    Completed,
    Failed,
    /// With its parent.
    Cancelled,
    /// The daemon ended while it ran.
    Interrupted,
}

impl FailureCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Denied => "denied",
            Self::Model => "model",
            Self::Other => "other",
        }
    }
}

impl SubagentExit {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

impl SubagentEventKind {
    /// With texts as long as a log keeps them.
    pub(super) fn bounded(mut self) -> Self {
        match &mut self {
            Self::Started { prompt: text, .. }
            | Self::Completed { result: text }
            | Self::Failed { message: text, .. } => cut(text, TEXT_LIMIT),
            Self::ToolCall { tool } | Self::ApprovalRequested { tool, .. } => cut(tool, NAME_LIMIT),
            Self::Turn { .. } | Self::ApprovalResolved { .. } | Self::Exited { .. } => {}
        }
        self
    }
}

fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push('…');
    }
}
