//! Builds the JSON body of a chat completions request.

use std::borrow::Cow;

use super::{probe::Capabilities, wire};
use crate::provider::{
    ChatRequest, ToolRole,
    chat::{
        messages::{self, Dialect},
        prompted,
    },
};

/// The parts of a request that may change between two attempts.
#[derive(Clone, Copy)]
pub(super) struct RequestForm {
    pub max_tokens: u32,
    /// Describes the tools in the system text instead of the `tools` field.
    pub tools_in_prompt: bool,
}

/// Builds the body of `request`. The same arguments give the same bytes, so that the server's prompt cache matches.
pub(super) fn build(
    model: &str,
    capabilities: &Capabilities,
    request: &ChatRequest,
    form: RequestForm,
) -> Vec<u8> {
    let llama_cpp = capabilities.is_llama_cpp.then_some(true);
    let dialect = Dialect {
        tool_role: request.tool_role != ToolRole::Text && !form.tools_in_prompt,
        calls_as_text: form.tools_in_prompt,
        system_role: capabilities.supports_system_role,
        reasoning: capabilities.is_llama_cpp,
        short_ids: capabilities.needs_short_ids,
    };
    let system = if form.tools_in_prompt && !request.tools.is_empty() {
        Cow::Owned(prompted::system_with_tools(&request.system, &request.tools))
    } else {
        Cow::Borrowed(&*request.system)
    };
    let forced = request.forced_tool();
    let sampling = &request.sampling;
    let body = wire::Request {
        model,
        messages: &messages::to_wire(&system, &request.messages, dialect),
        tools: &messages::tools(if form.tools_in_prompt { &[] } else { &request.tools }),
        // A forced answer is bound by a grammar while the prompt stays the same, so that the cache still matches.
        // `tool_choice: "required"` would let the model write text first, without end if it likes.
        tool_choice: forced.filter(|_| !form.tools_in_prompt).map(|_| "none"),
        response_format: forced.map(prompted::arguments_format),
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
