//! What a run comes to, for both of OpenAI's APIs.

use http::StatusCode;
use serde_json::{Value, json};

use super::super::{answer::Fault, approval::Approver};
use crate::{
    agent::{
        Run,
        protocol::{Event, Failure, Outcome as Ending, RunError},
    },
    core::ToolCall,
};

/// One piece of a run, as far as these APIs can tell of it.
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
    /// The run is over.
    End(Result<Finish, Fault>),
}

/// How a run ended well.
pub(super) enum Finish {
    Stop,
    Length,
    /// The client is to run these.
    Calls(Vec<ToolCall>),
}

impl Finish {
    /// Chat completions' word for it.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Calls(_) => "tool_calls",
        }
    }
}

/// Hears a run.
pub(super) struct Listener {
    approver: Approver,
    /// The tools are the client's: the first calls end the run.
    hands_over: bool,
    /// In tokens; of all turns together.
    pub(super) prompt: u32,
    pub(super) cached: u32,
    pub(super) completion: u32,
}

impl Listener {
    pub(super) fn new(approver: Approver, hands_over: bool) -> Self {
        Self { approver, hands_over, prompt: 0, cached: 0, completion: 0 }
    }

    pub(super) fn hear(&mut self, event: Event, run: &Run) -> Option<Piece> {
        match event {
            Event::Text(text) if !text.is_empty() => Some(Piece::Text(text)),
            Event::Reasoning(text) if !text.is_empty() => Some(Piece::Reasoning(text)),
            Event::TurnCompleted { calls, context, .. } => {
                self.prompt = self.prompt.saturating_add(context.prompt_tokens.unwrap_or_default());
                self.cached = self.cached.saturating_add(context.cached_tokens.unwrap_or_default());
                self.completion = self.completion.saturating_add(context.answer_tokens.unwrap_or_default());
                (self.hands_over && !calls.is_empty()).then_some(Piece::End(Ok(Finish::Calls(calls))))
            }
            Event::ToolsProposed(calls) => {
                self.approver.decide(&calls, run);
                None
            }
            Event::Ended(ending) => Some(Piece::End(match ending {
                Ending::Completed { truncated: true, .. } => Ok(Finish::Length),
                Ending::Completed { .. } => Ok(Finish::Stop),
                Ending::Denied => Err(Fault::new(StatusCode::FORBIDDEN, "a tool call was denied")),
                Ending::Cancelled => {
                    Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, "the run was cancelled"))
                }
                Ending::Failed(error) => Err(failed(error)),
            })),
            _ => None,
        }
    }
}

fn failed(error: RunError) -> Fault {
    let status = match error.kind {
        Failure::Request | Failure::Limit => StatusCode::BAD_REQUEST,
        Failure::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
        Failure::Model => StatusCode::BAD_GATEWAY,
        Failure::Storage | Failure::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    Fault::new(status, format!("{}{hint}", error.message))
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
