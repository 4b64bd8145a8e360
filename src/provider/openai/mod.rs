//! Any server that speaks OpenAI's chat completions: llama-server first, vLLM, Ollama and gateways too.

mod error_response;
mod http;
mod probe;
mod server_kind;
mod sse;
mod stream;
mod template_overhead;
mod token_counter;
mod token_estimator;
mod turn_builder;
mod wire;

use std::{
    borrow::Cow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

pub use error_response::single_line;
pub use http::ServerClient;
pub use probe::{Capabilities, Probe, load_failure, load_model, probe};
pub use server_kind::ServerKind;

use self::{
    template_overhead::TemplateOverhead, token_counter::TokenCounter, token_estimator::TokenEstimator,
    turn_builder::TurnBuilder,
};
use super::{
    ChatRequest, Delta, Progress, Provider, ProviderError, ToolRole, Turn,
    chat::{
        messages::{self, Dialect},
        prompted::{self, ToolCallParser},
    },
    kv_cache::SlotCache,
    slots::{SlotError, Slots},
};
use crate::core::{Cancel, Message, ToolDef};

/// How long things may take. There is no limit on a whole answer: slow but moving is fine.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For a connection to be made.
    pub connect: Duration,
    /// For a small question such as `/props`.
    pub probe: Duration,
    /// Without a token or a report of progress, before the first token.
    pub first_token: Duration,
    /// Between two tokens.
    pub between_tokens: Duration,
    /// For the counts that may follow the finish reason.
    pub after_finish: Duration,
    /// For a model to be loaded.
    pub load: Duration,
    /// Between a crash of our own server and its next start, where it doubles with each further crash; and
    /// before a request that a gateway could not pass on is sent again.
    pub backoff: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            probe: Duration::from_secs(2),
            first_token: Duration::from_secs(600),
            between_tokens: Duration::from_secs(120),
            after_finish: Duration::from_secs(5),
            load: Duration::from_secs(600),
            backoff: Duration::from_millis(500),
        }
    }
}

/// A server and what is known about it; shared by the providers of its models.
pub struct Server {
    client: ServerClient,
    slots: Slots,
    counts: TokenCounter,
    /// The last exchange did not fail.
    healthy: AtomicBool,
    timing: Timing,
    /// For a server of our own.
    kv_cache: Option<SlotCache>,
}

impl Server {
    pub fn new(link: ServerClient, slots: usize, timing: Timing) -> Self {
        Self {
            client: link,
            slots: Slots::new(slots),
            counts: TokenCounter::default(),
            healthy: AtomicBool::new(true),
            timing,
            kv_cache: None,
        }
    }

    /// The same, with its cache kept on disk.
    pub fn with_kv_cache(self, kept: Option<SlotCache>) -> Self {
        Self { kv_cache: kept, ..self }
    }

    /// Writes its cache down, if it is doing nothing.
    pub fn save_kv_cache(&self, patience: Duration) {
        if let Some(kept) = &self.kv_cache
            && self.slots.wait_idle(&Cancel::new(), Duration::ZERO)
        {
            kept.save_current(&self.client, patience);
        }
    }

    pub fn client(&self) -> &ServerClient {
        &self.client
    }

    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Nothing has gone wrong since it was found.
    pub fn is_healthy(&self) -> bool {
        self.healthy.load(SeqCst)
    }

    pub fn set_healthy(&self, good: bool) {
        self.healthy.store(good, SeqCst);
    }
}

/// One model of one server.
pub struct OpenAiProvider {
    server: Arc<Server>,
    /// As requests carry it.
    model: String,
    capabilities: Capabilities,
    /// It has refused a request because there were tools in it.
    refuses_tools: AtomicBool,
    /// For a server that cannot count.
    token_estimator: TokenEstimator,
    overhead: OnceLock<Option<TemplateOverhead>>,
}

/// Prompts below this are not looked at for truncation, in tokens: an estimate is too coarse for them.
const MIN_TRUNCATION_TOKENS: u32 = 1024;

/// The model name that requests carry: without `.gguf`, and `default` when there is none.
/// Source: behaviour of the first kontekst.
pub fn wire_model_name(model: &str) -> &str {
    match model.strip_suffix(".gguf").unwrap_or(model) {
        "" => "default",
        model => model,
    }
}

/// Why an attempt gave no answer.
enum AttemptError {
    /// Try again in a while.
    Loading,
    /// A gateway could not pass it on: try again once.
    Gateway(ProviderError),
    Error(ProviderError),
}

impl From<ProviderError> for AttemptError {
    fn from(error: ProviderError) -> Self {
        Self::Error(error)
    }
}

impl OpenAiProvider {
    pub fn new(server: Arc<Server>, model: &str, capabilities: Capabilities) -> Self {
        Self {
            server,
            model: wire_model_name(model).to_owned(),
            capabilities,
            refuses_tools: AtomicBool::new(false),
            token_estimator: TokenEstimator::default(),
            overhead: OnceLock::new(),
        }
    }

    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Tokens that the answer may take: what the prompt leaves of the window. Some servers refuse to
    /// promise more.
    fn max_tokens(&self, request: &ChatRequest) -> u32 {
        let Capabilities { is_llama_cpp: llama, window, .. } = self.capabilities;
        let Some(window) = window.filter(|_| request.prompt_tokens > 0) else { return request.max_tokens };
        // What is estimated may be more.
        let margin = if llama { 0 } else { request.prompt_tokens / 8 };
        let left = window.saturating_sub(request.prompt_tokens).saturating_sub(margin);
        request.max_tokens.min(left).max(1)
    }

    /// A server that truncates tells by its count alone. llama.cpp refuses instead.
    fn detect_truncation(&self, request: &ChatRequest, turn: &mut Turn) {
        let sent = request.prompt_tokens;
        if let Some(usage) = turn.usage.filter(|usage| usage.prompt > 0 && !self.capabilities.is_llama_cpp)
            && sent >= MIN_TRUNCATION_TOKENS
            && usage.prompt < sent / 2
        {
            turn.truncated_tokens = Some(sent - usage.prompt);
        }
    }

    /// Learns from the count of a server that cannot be asked for one.
    fn learn_token_rate(&self, request: &ChatRequest, turn: &Turn) {
        if let Some(usage) =
            turn.usage.filter(|_| !self.capabilities.is_llama_cpp && turn.truncated_tokens.is_none())
        {
            self.token_estimator.learn(prompt_bytes(request), usage.prompt, self.capabilities.window);
        }
    }

    /// `prompted` puts the tools into the system text.
    fn body(&self, request: &ChatRequest, max_tokens: u32, prompted: bool) -> Vec<u8> {
        let Capabilities {
            is_llama_cpp: llama,
            supports_system_role: system_role,
            needs_short_ids: short_ids,
            ..
        } = self.capabilities;
        let dialect = Dialect {
            tool_role: request.tool_role != ToolRole::Text && !prompted,
            calls_as_text: prompted,
            system_role,
            reasoning: llama,
            short_ids,
        };
        let system = match prompted && !request.tools.is_empty() {
            true => Cow::Owned(prompted::system_with_tools(&request.system, &request.tools)),
            false => Cow::Borrowed(&*request.system),
        };
        let forced = request.forced_tool();
        let sampling = &request.sampling;
        let request = wire::Request {
            model: &self.model,
            messages: &messages::to_wire(&system, &request.messages, dialect),
            tools: &messages::tools(if prompted { &[] } else { &request.tools }),
            // A forced answer is bound by a grammar and the prompt stays as it was, so that the cache holds.
            // `tool_choice: "required"` would let the model talk first, for ever if it likes.
            tool_choice: forced.filter(|_| !prompted).map(|_| "none"),
            response_format: forced.map(prompted::arguments_format),
            max_tokens,
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            repeat_penalty: sampling.repeat_penalty,
            stream: true,
            stream_options: wire::StreamOptions { include_usage: true },
            return_progress: llama.then_some(true),
            cache_prompt: llama.then_some(true),
        };
        serde_json::to_vec(&request).expect("strings, numbers and JSON values are JSON")
    }

    /// Whether tools are told and called in plain text, because the template knows none or the server said no.
    fn use_prompted_tools(&self, request: &ChatRequest) -> bool {
        request.tool_role != ToolRole::Native && self.tools_in_prompt()
    }

    fn attempt(
        &self,
        request: &ChatRequest,
        (body, prompted): (&[u8], bool),
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, AttemptError> {
        let exchange = self.server.client.exchange(cancel, self.server.timing.first_token);
        let response = exchange.post("/v1/chat/completions", body)?;
        let status = response.status().as_u16();
        if status != 200 {
            exchange.watchdog.reset_shorter(self.server.timing.probe);
            let body = exchange.read_body(response, 1024 * 1024)?;
            let refused = error_response::from_status(status, &body);
            return Err(match status {
                _ if error_response::is_loading(status, &body) => AttemptError::Loading,
                // llama-server's own 500 is about the request, and comes again.
                502..=504 => AttemptError::Gateway(refused),
                _ if error_response::is_about_tools(&refused) => refused.into(),
                500 if !self.capabilities.is_llama_cpp => AttemptError::Gateway(refused),
                _ => refused.into(),
            });
        }
        // A forced answer is arguments and nothing else.
        let tools = if request.force_tool.is_some() { &[] } else { &*request.tools };
        let answer = TurnBuilder::new(ToolCallParser::new(tools, prompted));
        let mut turn = stream::read_turn(&exchange, response, &self.server.timing, answer, sink)?;
        if let Some(tool) = request.forced_tool() {
            turn = prompted::into_forced_call(&tool.name, turn);
        }
        Ok(turn)
    }
}

/// Bytes of everything in a request that the model reads.
fn prompt_bytes(request: &ChatRequest) -> usize {
    let message = |message: &Message| {
        let calls: usize = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        message.content.len() + calls + message.tool_result.as_ref().map_or(0, |result| result.output.len())
    };
    let tool = |tool: &ToolDef| tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    request.system.len()
        + request.messages.iter().map(message).sum::<usize>()
        + request.tools.iter().map(tool).sum::<usize>()
}

impl Provider for OpenAiProvider {
    fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        let waiting = &mut |place| sink(Delta::Progress(Progress::Queued { position: place }));
        let session = request.session.as_ref();
        let _permit =
            self.server.slots.acquire(session, cancel, waiting).map_err(|no_place| match no_place {
                SlotError::Cancelled => ProviderError::Cancelled,
                SlotError::Closed => ProviderError::Unreachable {
                    endpoint: self.server.client.base().to_owned(),
                    started: false,
                    source: std::io::Error::new(
                        std::io::ErrorKind::NotConnected,
                        "the server is being stopped",
                    ),
                },
            })?;
        if let Some(kept) = &self.server.kv_cache {
            kept.prepare(&self.server.client, session, cancel);
        }
        let (mut max_tokens, mut prompted) = (self.max_tokens(request), self.use_prompted_tools(request));
        let (mut body, mut lowered, mut again) = (self.body(request, max_tokens, prompted), false, false);
        let (start, mut wait) = (Instant::now(), Duration::from_millis(50));
        loop {
            match self.attempt(request, (&body, prompted), cancel, sink) {
                Ok(mut turn) => {
                    self.detect_truncation(request, &mut turn);
                    self.learn_token_rate(request, &turn);
                    return Ok(turn);
                }
                Err(AttemptError::Error(error))
                    if !prompted
                        && request.tool_role != ToolRole::Native
                        && !request.tools.is_empty()
                        && error_response::is_about_tools(&error) =>
                {
                    tracing::info!(model = self.model, %error, "tools are told in plain text from now on");
                    self.refuses_tools.store(true, SeqCst);
                    prompted = true;
                    body = self.body(request, max_tokens, prompted);
                }
                // vLLM counts what the answer may take: the prompt alone fits.
                Err(AttemptError::Error(ProviderError::Overflow { prompt_tokens, window }))
                    if !self.capabilities.is_llama_cpp
                        && !lowered
                        && prompt_tokens > window
                        && prompt_tokens - window < max_tokens =>
                {
                    lowered = true;
                    max_tokens -= prompt_tokens - window;
                    body = self.body(request, max_tokens, prompted);
                }
                Err(AttemptError::Loading) if start.elapsed() < self.server.timing.load => {
                    sink(Delta::Progress(Progress::Loading { model: self.model.clone(), fraction: None }));
                    if cancel.is_cancelled_within(wait) {
                        return Err(ProviderError::Cancelled);
                    }
                    wait = (wait * 2).min(Duration::from_secs(1));
                }
                Err(AttemptError::Loading) => {
                    let message = "it has been loading its model for too long".to_owned();
                    return Err(ProviderError::Status { status: 503, message });
                }
                Err(AttemptError::Gateway(_)) if !again => {
                    again = true;
                    if cancel.is_cancelled_within(self.server.timing.backoff) {
                        return Err(ProviderError::Cancelled);
                    }
                }
                Err(AttemptError::Error(error) | AttemptError::Gateway(error)) => {
                    if matches!(error, ProviderError::Unreachable { .. }) {
                        self.server.set_healthy(false);
                    }
                    return Err(error);
                }
            }
        }
    }

    fn count_tokens(&self, texts: &[&str], cancel: &Cancel) -> Vec<u32> {
        if self.capabilities.is_llama_cpp && !cancel.is_cancelled() {
            let path = match self.capabilities.server_kind {
                ServerKind::LlamaSwap => server_kind::upstream_path(&self.model, "/tokenize"),
                _ => "/tokenize".to_owned(),
            };
            self.server.counts.count(&self.server.client, &path, &self.model, texts, cancel)
        } else {
            texts.iter().map(|text| self.token_estimator.estimate(text.len())).collect()
        }
    }

    fn template_tokens(&self, messages: usize, cancel: &Cancel) -> u32 {
        if self.capabilities.server_kind != ServerKind::LlamaCpp || cancel.is_cancelled() {
            return 0;
        }
        let measured =
            self.overhead.get_or_init(|| TemplateOverhead::measure(&self.server.client, &self.model, cancel));
        measured.map_or(0, |overhead| overhead.for_messages(messages))
    }

    fn window(&self) -> Option<u32> {
        self.capabilities.window
    }

    fn can_force_tool(&self) -> bool {
        self.capabilities.is_llama_cpp
    }

    fn tools_in_prompt(&self) -> bool {
        !self.capabilities.supports_tools || self.refuses_tools.load(SeqCst)
    }

    fn slots(&self) -> usize {
        self.server.slots.limit()
    }
}
