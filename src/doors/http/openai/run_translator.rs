//! Translates the events of a run for both of OpenAI's APIs.

use http::StatusCode;
use serde_json::{Value, json};

use super::super::{approval::Approver, response::HttpError};
use crate::{
    agent::{
        Run,
        protocol::{Event, FailureKind, Outcome as Ending, RunError},
    },
    core::ToolCall,
};

/// A part of a run that these APIs can express.
pub(super) enum RunDelta {
    Text(String),
    Reasoning(String),
    /// The run is over.
    End(Result<RunEnd, HttpError>),
}

/// How a run ended, if it did not fail.
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

/// Translates the events of one run, decides on its tool calls, and counts its tokens.
pub(super) struct RunTranslator {
    approver: Approver,
    /// The tools are the client's, so the run ends with the first turn that has calls.
    client_runs_tools: bool,
    /// Tokens of the prompts of all turns.
    pub(super) prompt: u32,
    /// Those of them that came from the server's cache.
    pub(super) cached: u32,
    /// Tokens of the answers of all turns.
    pub(super) completion: u32,
}

impl RunTranslator {
    pub(super) fn new(approver: Approver, hands_over: bool) -> Self {
        Self { approver, client_runs_tools: hands_over, prompt: 0, cached: 0, completion: 0 }
    }

    pub(super) fn translate(&mut self, event: Event, run: &Run) -> Option<RunDelta> {
        match event {
            Event::Text(text) if !text.is_empty() => Some(RunDelta::Text(text)),
            Event::Reasoning(text) if !text.is_empty() => Some(RunDelta::Reasoning(text)),
            Event::TurnCompleted { calls, context, .. } => {
                self.prompt = self.prompt.saturating_add(context.prompt_tokens.unwrap_or_default());
                self.cached = self.cached.saturating_add(context.cached_tokens.unwrap_or_default());
                self.completion = self.completion.saturating_add(context.answer_tokens.unwrap_or_default());
                (self.client_runs_tools && !calls.is_empty())
                    .then_some(RunDelta::End(Ok(RunEnd::ToolCalls(calls))))
            }
            Event::ToolsProposed(calls) => {
                self.approver.decide(&calls, run);
                None
            }
            Event::Ended(ending) => Some(RunDelta::End(match ending {
                Ending::Completed { truncated: true, .. } => Ok(RunEnd::Length),
                Ending::Completed { .. } => Ok(RunEnd::Stop),
                Ending::Denied => Err(HttpError::new(StatusCode::FORBIDDEN, "a tool call was denied")),
                Ending::Cancelled => {
                    Err(HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "the run was cancelled"))
                }
                Ending::Failed(error) => Err(failed(error)),
            })),
            _ => None,
        }
    }
}

fn failed(error: RunError) -> HttpError {
    let status = match error.kind {
        FailureKind::Request | FailureKind::Limit => StatusCode::BAD_REQUEST,
        FailureKind::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
        FailureKind::Model => StatusCode::BAD_GATEWAY,
        FailureKind::Storage | FailureKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    HttpError::new(status, format!("{}{hint}", error.message))
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
