//! A model on a server, and what is known about the two.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use super::{probe::Capabilities, server::Server};
use crate::provider::{ChatRequest, ToolRole};

/// A model on a server.
pub(super) struct ServedModel {
    pub(super) server: Arc<Server>,
    /// The name that requests carry.
    pub(super) model: String,
    pub(super) capabilities: Capabilities,
    /// Set after the server refused a request because it had tools.
    refuses_tools: AtomicBool,
}

impl ServedModel {
    pub(super) fn new(server: Arc<Server>, model: String, capabilities: Capabilities) -> Self {
        Self { server, model, capabilities, refuses_tools: AtomicBool::new(false) }
    }

    /// Returns true if the chat template has no tools, or the server refused them.
    pub(super) fn needs_tools_in_prompt(&self) -> bool {
        !self.capabilities.supports_tools || self.refuses_tools.load(SeqCst)
    }

    /// Returns the number of tokens that the answer may take: what the prompt leaves of the window, because some
    /// servers refuse a request that could not fit.
    pub(super) fn max_tokens(&self, request: &ChatRequest) -> u32 {
        let Capabilities { is_llama_cpp, window, .. } = self.capabilities;
        let Some(window) = window.filter(|_| request.prompt_tokens > 0) else { return request.max_tokens };
        // A prompt that was only estimated may be longer.
        let margin = if is_llama_cpp { 0 } else { request.prompt_tokens / 8 };
        let left = window.saturating_sub(request.prompt_tokens).saturating_sub(margin);
        request.max_tokens.min(left).max(1)
    }

    /// Returns true if tools are described and called in plain text: the template has no tools, or the server
    /// refused them.
    pub(super) fn puts_tools_in_prompt(&self, request: &ChatRequest) -> bool {
        request.tool_role != ToolRole::Native && self.needs_tools_in_prompt()
    }

    /// Notes that the server refuses requests with tools.
    pub(super) fn set_refuses_tools(&self) {
        self.refuses_tools.store(true, SeqCst);
    }
}
