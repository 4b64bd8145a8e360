//! Builds the JSON body of a chat completions request.

use std::borrow::Cow;

use super::{probe::Capabilities, wire};
use crate::provider::{
    ChatRequest, ToolRole,
    chat::{
        messages::{self, CallForm, Dialect},
        prompted, steps,
    },
};

/// The parts of a request that may change between two attempts.
#[derive(Clone, Copy)]
pub(super) struct RequestForm {
    pub max_tokens: u32,
    pub calling: Calling,
}

/// The way in which the model calls tools.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Calling {
    /// With the API's own fields for tools and calls.
    Native,
    /// In text: the tools are described in the system text.
    Text,
    /// In steps: the tools are described in the system text, and each answer is decoded under a schema.
    Steps,
}

/// Builds the body of `request`. The same arguments give the same bytes, so that the server's prompt cache matches.
pub(super) fn build(
    model: &str,
    capabilities: &Capabilities,
    request: &ChatRequest,
    form: RequestForm,
) -> Vec<u8> {
    let llama_cpp = capabilities.is_llama_cpp.then_some(true);
    let native = form.calling == Calling::Native;
    let dialect = Dialect {
        tool_role: request.tool_role != ToolRole::Text && native,
        calls: match form.calling {
            Calling::Native => CallForm::Native,
            Calling::Text => CallForm::Tagged,
            Calling::Steps => CallForm::Step,
        },
        system_role: capabilities.supports_system_role,
        reasoning: capabilities.is_llama_cpp,
        short_ids: capabilities.needs_short_ids,
    };
    let system = match form.calling {
        Calling::Text if !request.tools.is_empty() => {
            Cow::Owned(prompted::system_with_tools(&request.system, &request.tools))
        }
        Calling::Steps => Cow::Owned(steps::system_with_steps(&request.system, &request.tools)),
        Calling::Native | Calling::Text => Cow::Borrowed(&*request.system),
    };
    let forced = request.forced_tool();
    let sampling = &request.sampling;
    let body = wire::Request {
        model,
        messages: &messages::to_wire(&system, &request.messages, dialect),
        tools: &messages::tools(if native { &request.tools } else { &[] }),
        // A forced answer is bound by a grammar while the prompt stays the same, so that the cache still matches.
        // `tool_choice: "required"` would let the model write text first, without end if it likes.
        tool_choice: forced.filter(|_| native).map(|_| "none"),
        response_format: match (forced, form.calling) {
            (Some(tool), _) => Some(prompted::arguments_format(tool)),
            (None, Calling::Steps) => Some(steps::response_format(&request.tools)),
            (None, Calling::Native | Calling::Text) => None,
        },
        max_tokens: form.max_tokens,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: sampling.top_k,
        repeat_penalty: sampling.repeat_penalty,
        stream: true,
        stream_options: wire::StreamOptions { include_usage: true },
        return_progress: llama_cpp,
        cache_prompt: llama_cpp,
    };
    serde_json::to_vec(&body).expect("strings, numbers and JSON values are JSON")
}
