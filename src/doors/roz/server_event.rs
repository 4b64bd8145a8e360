//! What a client hears, in words that belong to no generation.

use prost_types::Struct;

use crate::agent::protocol::{FailureKind, RunError};

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
        message: String,
        content: String,
    },
    Thinking {
        message: String,
        content: String,
    },
    ToolRequest {
        call: String,
        tool: String,
        parameters: Struct,
        timeout_ms: u32,
    },
    TurnComplete {
        message: String,
        usage: Option<Usage>,
        stop: &'static str,
    },
    Error(Fault),
    Keepalive(Option<ContextUsage>),
    Pong,
    Compacted {
        messages: (u32, u32),
        tokens: (u32, u32),
    },
    Presence {
        level: &'static str,
        reason: &'static str,
    },
    Activity {
        state: Activity,
        detail: String,
        progress: Option<f32>,
    },
    ApprovalRequested {
        call: String,
        tool: String,
        reason: String,
        timeout_secs: u64,
    },
    ApprovalResolved {
        call: String,
        /// `None` is a yes.
        denied: Option<String>,
    },
    Completed {
        summary: &'static str,
        totals: Usage,
    },
}

/// What may be done with a tool.
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

/// Tokens of one turn, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Read anew.
    pub(super) input: u64,
    pub(super) output: u64,
    /// Taken from the model server's cache.
    pub(super) cached: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached += other.cached;
    }
}

/// How full the window is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextUsage {
    pub(super) used: u32,
    pub(super) max: u32,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) retryable: bool,
}

impl Fault {
    /// What was sent cannot be.
    pub(super) fn invalid_argument(message: impl Into<String>) -> Self {
        Self { code: "invalid_argument", message: message.into(), retryable: false }
    }
}

impl From<RunError> for Fault {
    fn from(error: RunError) -> Self {
        let (code, retryable) = match error.kind {
            FailureKind::Model if error.busy => ("rate_limited", true),
            FailureKind::Unreachable => ("model_error", true),
            FailureKind::Request | FailureKind::Model | FailureKind::Limit => ("agent_error", false),
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
    /// About how many bytes it takes.
    pub(super) fn approximate_size(&self) -> usize {
        256 + match self {
            Self::Text { message, content } | Self::Thinking { message, content } => {
                message.len() + content.len()
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

    /// Takes `more` into itself where it is more of the same text, up to 64 KiB in one frame. Gives the
    /// bytes that it has grown by.
    pub(super) fn merge_text(&mut self, more: &Self) -> Option<usize> {
        const WHOLE: usize = 64 * 1024;
        match (self, more) {
            (Self::Text { message, content }, Self::Text { message: of, content: text })
            | (Self::Thinking { message, content }, Self::Thinking { message: of, content: text })
                if message == of && content.len() < WHOLE =>
            {
                content.push_str(text);
                Some(text.len())
            }
            _ => None,
        }
    }
}
