//! What a run comes to, for both of OpenAI's APIs.

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

/// One piece of a run, as far as these APIs can tell of it.
pub(super) enum RunDelta {
    Text(String),
    Reasoning(String),
    /// The run is over.
    End(Result<RunEnd, HttpError>),
}

/// How a run ended well.
pub(super) enum RunEnd {
    Stop,
    Length,
    /// The client is to run these.
    ToolCalls(Vec<ToolCall>),
}

impl RunEnd {
    /// Chat completions' word for it.
    pub(super) fn finish_reason(&self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls(_) => "tool_calls",
        }
    }
}

/// Hears a run.
pub(super) struct RunTranslator {
    approver: Approver,
    /// The tools are the client's: the first calls end the run.
    client_runs_tools: bool,
    /// In tokens; of all turns together.
    pub(super) prompt: u32,
    pub(super) cached: u32,
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

/// A call as chat completions write it. `index` is there in streams only.
pub(super) fn chat_call(call: &ToolCall, index: Option<usize>) -> Value {
    let mut shown = json!({
        "id": call.id.to_string(), "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    });
    if let Some(index) = index {
        shown["index"] = json!(index);
    }
    shown
}
