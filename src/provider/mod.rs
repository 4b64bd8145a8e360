//! Who answers: model backends behind two plain, blocking traits.

#[cfg(feature = "builtin")]
pub mod builtin;
mod chat;
mod endpoint;
mod failover;
mod model_file;
pub mod openai;
mod process_env;
mod request_parts;
pub mod router;
mod slots;
pub mod supervisor;
#[cfg(not(feature = "builtin"))]
pub mod without_builtin;

use std::{fmt, io, sync::Arc};

#[cfg(not(feature = "builtin"))]
pub use self::without_builtin as builtin;
pub use crate::config::ToolRole;
use crate::core::{Cancel, Message, Sampling, SessionId, ToolCall, ToolDef};
pub use request_parts::{PartTokens, RequestParts};

/// One model backend, ready to answer. Blocking by design: `agent::bridge` gives each call a thread.
pub trait Provider: Send + Sync {
    /// Asks for one answer and hands its pieces to `sink` as they arrive.
    ///
    /// Returns soon after `cancel` is given, also while nothing arrives.
    ///
    /// # Errors
    ///
    /// [`ProviderError`]. A stream that ends before its finish reason is an error, never a short answer.
    fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError>;

    /// Counts the model tokens of each text, in order. Never fails: an estimate (bytes / 4) stands in
    /// for a server that cannot count.
    fn count_tokens(&self, texts: &[&str], cancel: &Cancel) -> Vec<u32>;

    /// Counts the tokens of each part of a request, in the form in which it is sent, with one question to the server.
    fn count_parts(&self, parts: &RequestParts<'_>, cancel: &Cancel) -> PartTokens {
        let shown = self.shown();
        let tools = request_parts::tool_definitions(parts.tools);
        let mut texts =
            vec![if shown.system { parts.system } else { "" }, if shown.tools { &tools } else { "" }];
        texts.extend(&parts.texts);
        let counts = self.count_tokens(&texts, cancel);
        PartTokens { system: counts[0], tools: counts[1], texts: counts[2..].to_vec() }
    }

    /// Tokens that the chat template adds to the texts of so many messages; 0 when nobody can tell. Asks
    /// the server once.
    fn template_tokens(&self, _messages: usize, _cancel: &Cancel) -> u32 {
        0
    }

    /// Tokens the model can see, where the server says so.
    fn window(&self) -> Option<u32>;

    /// Whether [`ChatRequest::force`] is understood.
    fn can_force_tool(&self) -> bool {
        false
    }

    /// Tools are told and called in plain text, because the template or the server knows none.
    fn tools_in_prompt(&self) -> bool {
        false
    }

    /// How many requests may run at once.
    fn slots(&self) -> usize;

    /// What of a conversation reaches the model.
    fn shown(&self) -> Shown {
        Shown::default()
    }

    /// One line for the person who asks, where what answers is not what they would expect.
    fn notice(&self) -> Option<String> {
        None
    }
}

/// What of a conversation reaches a model. What does not costs nothing and takes no place in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub system: bool,
    /// The definitions of tools; a model may know its tools without.
    pub tools: bool,
    /// What was said before the last prompt.
    pub history: bool,
}

impl Default for Shown {
    fn default() -> Self {
        Self { system: true, tools: true, history: true }
    }
}

/// Finds or starts the backend of a model.
pub trait Models: Send + Sync {
    /// Makes the wanted model ready to answer.
    ///
    /// May take minutes while a
    /// model loads, reporting through `sink`; cheap when it is ready. After an
    /// [`ProviderError::Unreachable`] from the provider, call it again: what answered may be gone.
    ///
    /// # Errors
    ///
    /// [`ProviderError`] says what is missing and what to do about it.
    fn open(
        &self,
        wanted: ModelSelector<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError>;

    /// The models that can be asked for by name, as far as is known. Blocks for at most two seconds.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is running right now. Blocks for at most two seconds.
    fn status(&self) -> ServerStatus;

    /// Stops every server that this process started. Called once, at the end.
    fn stop(&self);
}

/// What an agent asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelSelector<'a> {
    /// Its `model` key, empty for the server's own choice.
    pub model: &'a str,
    /// Its `endpoint` key: that server and no other.
    pub endpoint: Option<&'a str>,
}

/// One call of the model.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The system text; the same bytes in every turn.
    pub system: Arc<str>,
    /// The conversation, oldest first, starting at a user message.
    pub messages: Vec<Message>,
    /// In a fixed order; the same in every turn.
    pub tools: Arc<[ToolDef]>,
    pub sampling: Sampling,
    /// Tokens the answer may take.
    pub max_tokens: u32,
    /// How tools are offered and results sent.
    pub tool_role: ToolRole,
    /// Have this tool called and nothing said, with arguments that fit its schema: the same prompt, and a
    /// grammar. What the model writes then arrives as text, too. Only where
    /// [`Provider::can_force`].
    pub force_tool: Option<String>,
    /// The conversation it belongs to: sessions take turns, and the server's cache is kept for each.
    pub session: Option<SessionId>,
    /// Tokens of the prompt as far as known; 0 is unknown.
    pub prompt_tokens: u32,
}

impl ChatRequest {
    /// The tool that has to be called, if there is one.
    pub(crate) fn forced_tool(&self) -> Option<&ToolDef> {
        self.tools.iter().find(|tool| Some(&tool.name) == self.force_tool.as_ref())
    }
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    Progress(Progress),
}

/// Why there is no text yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Others are being answered first; 1 is next.
    Queued { position: usize },
    /// The model is being loaded. `fraction` is 0 to 1, where the server tells.
    Loading { model: String, fraction: Option<f32> },
    /// The model is reading the prompt. All in tokens.
    Prefill { processed: u32, total: u32, cached: u32 },
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    pub content: String,
    pub reasoning: String,
    /// In the order the model wrote them. Ids are unique within the turn.
    pub calls: Vec<ToolCall>,
    pub finish_reason: FinishReason,
    pub usage: Option<Usage>,
    /// Tokens of the prompt that the server seems to have left out without saying so.
    pub truncated_tokens: Option<u32>,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinishReason {
    #[default]
    Stop,
    /// `max_tokens` or the end of the window cut the answer; its calls are incomplete.
    Length,
}

/// What the server counted, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt: u32,
    pub completion: u32,
    /// Part of `prompt` that came from the server's cache.
    pub cached: u32,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    #[error("cancelled")]
    Cancelled,
    /// Nothing answered, or the connection broke. `started` says whether part of the answer had come.
    #[error("cannot reach the model server at {endpoint}")]
    Unreachable { endpoint: String, started: bool, source: io::Error },
    #[error("the model server answered {status}: {message}")]
    Status { status: u16, message: String },
    /// The prompt does not fit the window.
    #[error("the prompt takes {prompt_tokens} tokens and the window has {window}")]
    Overflow { prompt_tokens: u32, window: u32 },
    /// The server sent something that is not an answer.
    #[error("the model server sent a broken answer: {0}")]
    Protocol(String),
    /// The built-in engine could not answer.
    #[error("{0}")]
    Engine(String),
    /// There is no server and none can be started.
    #[error("{0}")]
    NoServer(NoServer),
}

/// Why no model server can be had: a fact, and one line of advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoServer {
    pub fact: String,
    pub hint: String,
}

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.fact, self.hint)
    }
}

/// What answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A server that somebody else runs.
    #[default]
    Endpoint,
    /// A llama-server of ours.
    LlamaServer,
    /// The engine in this process.
    Builtin,
}

/// The model server as `kontekst status` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    pub backend: Backend,
    /// Where requests go; empty for the engine in this process.
    pub endpoint: String,
    /// Something answers there.
    pub healthy: bool,
    /// A child of ours is alive, or the engine in this process has a model loaded.
    pub running: bool,
    /// Its process id, which may be our own; 0 when there is none.
    pub pid: u32,
    /// The model it serves, where known.
    pub model: String,
}
