//! Translates the events of a run for both of OpenAI's APIs.

use http::StatusCode;
use serde_json::{Value, json};

use kontekst_agent::{
    Run,
    protocol::{Event, FailureKind, Outcome, RunError},
};
use kontekst_core::ToolCall;

use super::{
    super::{approval::Approver, response::HttpError},
    conversation::OfferedTools,
};

/// A part of a run that these APIs can express.
pub(super) enum RunDelta {
    Text(String),
    Reasoning(String),
    /// The text so far is no answer. A client that reads it as it comes has it already.
    TurnedBack,
    /// The run is over.
    End(Result<RunEnd, HttpError>),
}

/// The end of a run that did not fail.
pub(super) enum RunEnd {
    Stop,
    Length,
    /// The client is to run these calls.
    ToolCalls(Vec<ToolCall>),
}

impl RunEnd {
    /// Returns the `finish_reason` of chat completions.
    pub(super) fn finish_reason(&self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls(_) => "tool_calls",
        }
    }
}

/// The calls of the model that the client runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientCalls {
    /// The daemon runs them.
    None,
    /// The client runs them, so the run ends with the first turn that has calls.
    All,
    /// The client runs one call of a turn. The model can make the others again.
    OneByOne,
}

impl ClientCalls {
    pub(super) fn new(tools: &OfferedTools, parallel: Option<bool>) -> Self {
        match (tools.run_at_client(), parallel) {
            (false, _) => Self::None,
            (true, Some(false)) => Self::OneByOne,
            (true, _) => Self::All,
        }
    }
}

/// Translates the events of one run, decides on its tool calls, and counts its tokens.
pub(super) struct RunTranslator {
    approver: Approver,
    client_calls: ClientCalls,
    /// The tokens of the prompts of all turns.
    pub(super) prompt_tokens: u32,
    /// The prompt tokens that came from the model server's cache.
    pub(super) cached_tokens: u32,
    /// The tokens of the answers of all turns.
    pub(super) completion_tokens: u32,
}

impl RunTranslator {
    pub(super) fn new(approver: Approver, client_calls: ClientCalls) -> Self {
        Self { approver, client_calls, prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0 }
    }

    pub(super) fn translate(&mut self, event: Event, run: &Run) -> Option<RunDelta> {
        match event {
            Event::Text(text) if !text.is_empty() => Some(RunDelta::Text(text)),
            Event::Reasoning(text) if !text.is_empty() => Some(RunDelta::Reasoning(text)),
            Event::TurnedBack(_) => Some(RunDelta::TurnedBack),
            Event::TurnCompleted { mut calls, context, .. } => {
                self.prompt_tokens =
                    self.prompt_tokens.saturating_add(context.prompt_tokens.unwrap_or_default());
                self.cached_tokens =
                    self.cached_tokens.saturating_add(context.cached_tokens.unwrap_or_default());
                self.completion_tokens =
                    self.completion_tokens.saturating_add(context.answer_tokens.unwrap_or_default());
                if self.client_calls == ClientCalls::OneByOne {
                    calls.truncate(1);
                }
                (self.client_calls != ClientCalls::None && !calls.is_empty())
                    .then_some(RunDelta::End(Ok(RunEnd::ToolCalls(calls))))
            }
            Event::ToolsProposed(calls) => {
                self.approver.decide(&calls, run);
                None
            }
            Event::Ended(outcome) => Some(RunDelta::End(match outcome {
                Outcome::Completed { truncated: true, .. } => Ok(RunEnd::Length),
                Outcome::Completed { .. } => Ok(RunEnd::Stop),
                Outcome::Denied | Outcome::Parked(_) => {
                    Err(HttpError::new(StatusCode::FORBIDDEN, "a tool call was denied"))
                }
                Outcome::Cancelled => {
                    Err(HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "the run was cancelled"))
                }
                Outcome::Failed(error) => Err(failed(error)),
            })),
            _ => None,
        }
    }
}

fn failed(error: RunError) -> HttpError {
    // A client decides by the status of the model server whether it asks again.
    let of_server = error.server_status.filter(|status| (400..600).contains(status));
    let status = match error.kind {
        FailureKind::Limit if error.busy => StatusCode::SERVICE_UNAVAILABLE,
        FailureKind::Request | FailureKind::Limit => StatusCode::BAD_REQUEST,
        FailureKind::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
        FailureKind::Model => {
            of_server.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::BAD_GATEWAY)
        }
        FailureKind::Check | FailureKind::Storage | FailureKind::Internal => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    let failed = HttpError::new(status, format!("{}{hint}", error.message));
    HttpError { retry_after: error.retry_after.or(failed.retry_after), ..failed }
}

/// Encodes a call for chat completions. Only streams have an `index`.
pub(super) fn chat_call(call: &ToolCall, index: Option<usize>) -> Value {
    let mut value = json!({
        "id": call.id.to_string(), "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    });
    if let Some(index) = index {
        value["index"] = json!(index);
    }
    value
}
