//! What every door says to a run, and what it hears.

use std::time::Duration;

use crate::{
    core::{CallId, ContextSnapshot, RunId, SessionId, ToolCall, ToolOutcome, error_chain},
    provider::Progress,
    subagent_log::SubagentEvent,
    tools::{ClientTool, Effect},
};

/// What a client may say while a run is going.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Approve(CallId),
    Deny {
        call: CallId,
        /// The model reads it.
        reason: String,
        then: AfterDenial,
    },
    /// The answer to [`Event::ToolRequested`].
    ToolResult {
        call: CallId,
        outcome: ToolOutcome,
    },
    /// Replaces the client's tools from the next model call on.
    SetClientTools(Vec<ClientTool>),
}

impl Command {
    /// A client's word on a call. A denial without a reason reads "user denied"; `go_on` lets the model read it.
    pub fn decision(call: CallId, approve: bool, reason: String, go_on: bool) -> Self {
        if approve {
            return Self::Approve(call);
        }
        let reason = if reason.is_empty() { "user denied".to_owned() } else { reason };
        Self::Deny { call, reason, then: if go_on { AfterDenial::Continue } else { AfterDenial::End } }
    }
}

/// What a denial means for the run once the approved calls of the turn have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDenial {
    /// It ends with [`Outcome::Denied`].
    End,
    /// The model reads the reason and goes on.
    Continue,
}

/// What a run reports, in order. [`Event::Ended`] comes exactly once, and last.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Absent when the run fails before it starts: unknown agent, unusable session.
    Started {
        run: RunId,
        session: SessionId,
        agent: String,
    },
    /// Something a person should know that changes nothing in the run.
    Notice(String),
    Progress(Progress),
    /// The history was replaced by a summary of it. In tokens, and in messages.
    Compacted {
        before: u32,
        after: u32,
        messages_before: usize,
        messages_after: usize,
    },
    /// The session is busy with another run; this one waits.
    WaitingForSession,
    Text(String),
    Reasoning(String),
    /// Everything up to here is on disk.
    TurnCompleted {
        content: String,
        reasoning: String,
        /// What the model asked for, in its order and as it wrote it.
        calls: Vec<ToolCall>,
        context: Box<ContextSnapshot>,
    },
    /// In model order. The run waits until each has a decision.
    ToolsProposed(Vec<ProposedCall>),
    ToolStarted {
        call: CallId,
        name: String,
    },
    /// The client runs this one and replies with [`Command::ToolResult`]. Several may be out at a time.
    ToolRequested {
        call: ToolCall,
        timeout: Duration,
        /// The worker that asks, if it is not the run itself. No `ToolFinished` follows then.
        subagent: Option<SessionId>,
    },
    /// The outcome is on disk.
    ToolFinished {
        call: CallId,
        outcome: ToolOutcome,
    },
    ToolsCompleted,
    /// What a worker of this run does, or a worker's worker. It is on disk.
    Subagent(SubagentEvent),
    Ended(Outcome),
}

/// A call that waits for a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedCall {
    pub call: ToolCall,
    pub preview: String,
    pub caution: Option<String>,
    pub effect: Effect,
    /// The worker that asks, if it is not the run itself.
    pub subagent: Option<SessionId>,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Completed {
        content: String,
        reasoning: String,
        /// The answer was cut by `max_tokens` or by the end of the window.
        truncated: bool,
    },
    /// A call was denied with [`AfterDenial::End`].
    Denied,
    Cancelled,
    Failed(RunError),
}

/// Why a run failed: a fact, and what to do about it where there is something to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    pub kind: FailureKind,
    pub message: String,
    pub hint: Option<String>,
    /// The model server has too much to do; the same may work later.
    pub busy: bool,
}

/// What sort of failure it was; doors turn it into their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// What was asked for does not exist or is not allowed.
    Request,
    /// No model server could be reached or started.
    Unreachable,
    /// The model server refused or sent something broken.
    Model,
    /// `max_turns`, or the window is too small.
    Limit,
    /// The session could not be read or written.
    Storage,
    Internal,
}

impl RunError {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, busy: false }
    }

    /// Makes an error whose message is `source` and the errors that caused it.
    pub(super) fn from_source(kind: FailureKind, source: &dyn std::error::Error) -> Self {
        Self::new(kind, error_chain(source))
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
