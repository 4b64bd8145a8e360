//! The events that the server sends to a client, independent of the generation of the protocol.

use prost_types::Struct;

use kontekst_agent::protocol::{FailureKind, RunError};

/// The longest detail of an activity, in characters. Source: the published service.
const MAX_DETAIL_CHARS: usize = 512;

/// The largest text, in bytes, that waiting text events are joined to. It becomes one frame.
const MAX_MERGED_TEXT: usize = 64 * 1024;

/// One thing that a client is told.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ServerEvent {
    Started {
        session: String,
        model: String,
        permissions: Vec<Permission>,
    },
    TurnStarted {
        index: u32,
    },
    Text {
        message_id: String,
        content: String,
    },
    Thinking {
        message_id: String,
        content: String,
    },
    ToolRequest {
        call_id: String,
        tool: String,
        parameters: Struct,
        timeout_ms: u32,
    },
    TurnComplete {
        message_id: String,
        /// `None` if the turn ended before the model answered.
        usage: Option<Usage>,
        stop_reason: &'static str,
    },
    Error(Fault),
    Keepalive(Option<ContextUsage>),
    Pong,
    /// The history was replaced by a summary of it.
    Compacted {
        messages_before: u32,
        messages_after: u32,
        tokens_before: u32,
        tokens_after: u32,
    },
    Presence {
        level: &'static str,
        reason: &'static str,
    },
    Activity {
        state: Activity,
        detail: String,
        /// From 0 to 1.
        progress: Option<f32>,
    },
    ApprovalRequested {
        call_id: String,
        tool: String,
        reason: String,
        timeout_secs: u64,
    },
    ApprovalResolved {
        call_id: String,
        /// `None` if the call was approved.
        denial_reason: Option<String>,
    },
    Completed {
        summary: &'static str,
        totals: Usage,
    },
}

/// A session's permission for the tools whose names match `pattern`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Permission {
    pub(super) pattern: String,
    pub(super) policy: &'static str,
    pub(super) category: Option<&'static str>,
    pub(super) reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Thinking,
    CallingTool,
    WaitingApproval,
    Idle,
}

/// The tokens of one turn, or of all turns of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Prompt tokens that the model server had to process.
    pub(super) input: u64,
    pub(super) output: u64,
    /// Prompt tokens that the model server found in its cache.
    pub cached: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached += other.cached;
    }
}

/// The fill level of the context window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextUsage {
    pub(super) used: u32,
    pub(super) max: u32,
}

/// An error that the client is told about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) retryable: bool,
}

impl Fault {
    pub(super) fn invalid_argument(message: impl Into<String>) -> Self {
        Self { code: "invalid_argument", message: message.into(), retryable: false }
    }
}

impl From<RunError> for Fault {
    fn from(error: RunError) -> Self {
        let (code, retryable) = match error.kind {
            FailureKind::Model | FailureKind::Limit if error.busy => ("rate_limited", true),
            FailureKind::Unreachable => ("model_error", true),
            FailureKind::Request | FailureKind::Model | FailureKind::Limit | FailureKind::Check => {
                ("agent_error", false)
            }
            FailureKind::Storage | FailureKind::Internal => ("internal", true),
        };
        let message = match error.hint {
            Some(hint) => format!("{} ({hint})", error.message),
            None => error.message,
        };
        Self { code, message, retryable }
    }
}

impl ServerEvent {
    /// Returns an activity without progress.
    pub(super) fn activity(state: Activity, detail: String) -> Self {
        Self::Activity { state, detail, progress: None }
    }

    /// Returns the activity of a model that works. The detail is cut to its longest form.
    pub(super) fn thinking(detail: &str, progress: Option<f32>) -> Self {
        let detail = detail.chars().take(MAX_DETAIL_CHARS).collect();
        Self::Activity { state: Activity::Thinking, detail, progress }
    }

    /// Estimates the memory, in bytes, that the event takes in the outbox.
    pub(super) fn approximate_size(&self) -> usize {
        256 + match self {
            Self::Text { message_id, content } | Self::Thinking { message_id, content } => {
                message_id.len() + content.len()
            }
            Self::ToolRequest { parameters, .. } => prost::Message::encoded_len(parameters) * 4,
            Self::Activity { detail, .. } => detail.len(),
            Self::Error(fault) => fault.message.len(),
            Self::ApprovalRequested { reason, .. } => reason.len(),
            Self::Started { permissions, .. } => permissions.len() * 128,
            Self::TurnStarted { .. }
            | Self::TurnComplete { .. }
            | Self::Keepalive(_)
            | Self::Pong
            | Self::Compacted { .. }
            | Self::Presence { .. }
            | Self::ApprovalResolved { .. }
            | Self::Completed { .. } => 0,
        }
    }

    /// Appends the text of `next` to this event, if both are text of the same kind and message and this one has
    /// not reached [`MAX_MERGED_TEXT`]. Returns the bytes that were added, or `None` if nothing was merged.
    pub(super) fn merge_text(&mut self, next: &Self) -> Option<usize> {
        match (self, next) {
            (
                Self::Text { message_id, content },
                Self::Text { message_id: next_message_id, content: next_content },
            )
            | (
                Self::Thinking { message_id, content },
                Self::Thinking { message_id: next_message_id, content: next_content },
            ) if message_id == next_message_id && content.len() < MAX_MERGED_TEXT => {
                content.push_str(next_content);
                Some(next_content.len())
            }
            _ => None,
        }
    }
}
