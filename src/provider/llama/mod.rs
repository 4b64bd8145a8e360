//! Any server that speaks OpenAI's chat completions: llama-server first, vLLM, Ollama and gateways too.

mod answer;
mod engine;
mod http;
mod probe;
mod refusal;
mod sse;
mod stall;
mod stream;
mod template;
mod tokens;
mod weight;
mod wire;

use std::{
    borrow::Cow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

pub use engine::Engine;
pub use http::Link;
pub use probe::{Capabilities, Probe, broken, probe, wake};
pub use refusal::shown;

use self::{answer::Answer, template::Overhead, tokens::Counts, weight::Weight};
use super::{
    ChatRequest, Delta, Progress, Provider, ProviderError, ToolRole, Turn,
    chat::{
        messages::{self, Dialect},
        prompted::{self, Sieve},
    },
    kv::Kept,
    pause::pause,
    slots::{NoPlace, Slots},
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
    pub first: Duration,
    /// Between two tokens.
    pub between: Duration,
    /// For the counts that may follow the finish reason.
    pub last: Duration,
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
            first: Duration::from_secs(600),
            between: Duration::from_secs(120),
            last: Duration::from_secs(5),
            load: Duration::from_secs(600),
            backoff: Duration::from_millis(500),
        }
    }
}

/// A server and what is known about it; shared by the providers of its models.
pub struct Server {
    link: Link,
    slots: Slots,
    counts: Counts,
    /// The last exchange did not fail.
    good: AtomicBool,
    timing: Timing,
    /// For a server of our own.
    kept: Option<Kept>,
}

impl Server {
    pub fn new(link: Link, slots: usize, timing: Timing) -> Self {
        Self {
            link,
            slots: Slots::new(slots),
            counts: Counts::default(),
            good: AtomicBool::new(true),
            timing,
            kept: None,
        }
    }

    /// The same, with its cache kept on disk.
    pub fn keeping(self, kept: Option<Kept>) -> Self {
        Self { kept, ..self }
    }

    /// Writes its cache down, if it is doing nothing.
    pub fn keep(&self, patience: Duration) {
        if let Some(kept) = &self.kept
            && self.slots.idle(&Cancel::new(), Duration::ZERO)
        {
            kept.keep(&self.link, patience);
        }
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Nothing has gone wrong since it was found.
    pub fn is_good(&self) -> bool {
        self.good.load(SeqCst)
    }

    pub fn set_good(&self, good: bool) {
        self.good.store(good, SeqCst);
    }
}

/// One model of one server.
pub struct OpenAi {
    server: Arc<Server>,
    /// As requests carry it.
    model: String,
    capabilities: Capabilities,
    /// It has refused a request because there were tools in it.
    refuses_tools: AtomicBool,
    /// For a server that cannot count.
    weight: Weight,
    overhead: OnceLock<Option<Overhead>>,
}

/// Prompts below this are not looked at for truncation, in tokens: an estimate is too coarse for them.
const TRUNCATABLE: u32 = 1024;

/// The model name that requests carry: without `.gguf`, and `default` when there is none.
/// Source: behaviour of the first kontekst.
pub fn wire_model(model: &str) -> &str {
    match model.strip_suffix(".gguf").unwrap_or(model) {
        "" => "default",
        model => model,
    }
}

/// Why an attempt gave no answer.
enum Failed {
    /// Try again in a while.
    Loading,
    /// A gateway could not pass it on: try again once.
    Gateway(ProviderError),
    Error(ProviderError),
}

impl From<ProviderError> for Failed {
    fn from(error: ProviderError) -> Self {
        Self::Error(error)
    }
}

impl OpenAi {
    pub fn new(server: Arc<Server>, model: &str, capabilities: Capabilities) -> Self {
        Self {
            server,
            model: wire_model(model).to_owned(),
            capabilities,
            refuses_tools: AtomicBool::new(false),
            weight: Weight::default(),
            overhead: OnceLock::new(),
        }
    }

    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Tokens that the answer may take: what the prompt leaves of the window. Some servers refuse to
    /// promise more.
    fn max_tokens(&self, request: &ChatRequest) -> u32 {
        let Capabilities { llama, window, .. } = self.capabilities;
        let Some(window) = window.filter(|_| request.prompt_tokens > 0) else { return request.max_tokens };
        // What is estimated may be more.
        let margin = if llama { 0 } else { request.prompt_tokens / 8 };
        let left = window.saturating_sub(request.prompt_tokens).saturating_sub(margin);
        request.max_tokens.min(left).max(1)
    }

    /// A server that truncates tells by its count alone. llama.cpp refuses instead.
    fn look_for_truncation(&self, request: &ChatRequest, turn: &mut Turn) {
        let sent = request.prompt_tokens;
        if let Some(usage) = turn.usage.filter(|usage| usage.prompt > 0 && !self.capabilities.llama)
            && sent >= TRUNCATABLE
            && usage.prompt < sent / 2
        {
            turn.unread = Some(sent - usage.prompt);
        }
    }

    /// Learns from the count of a server that cannot be asked for one.
    fn weigh(&self, request: &ChatRequest, turn: &Turn) {
        if let Some(usage) = turn.usage.filter(|_| !self.capabilities.llama && turn.unread.is_none()) {
            self.weight.learn(bytes(request), usage.prompt, self.capabilities.window);
        }
    }

    /// `prompted` puts the tools into the system text.
    fn body(&self, request: &ChatRequest, max_tokens: u32, prompted: bool) -> Vec<u8> {
        let Capabilities { llama, system_role, short_ids, .. } = self.capabilities;
        let dialect = Dialect {
            tool_role: request.tool_role != ToolRole::Text && !prompted,
            written_calls: prompted,
            system_role,
            reasoning: llama,
            short_ids,
        };
        let system = match prompted && !request.tools.is_empty() {
            true => Cow::Owned(prompted::system(&request.system, &request.tools)),
            false => Cow::Borrowed(&*request.system),
        };
        let forced = request.forced();
        let sampling = &request.sampling;
        let request = wire::Request {
            model: &self.model,
            messages: &messages::wire(&system, &request.messages, dialect),
            tools: &messages::tools(if prompted { &[] } else { &request.tools }),
            // A forced answer is bound by a grammar and the prompt stays as it was, so that the cache holds.
            // `tool_choice: "required"` would let the model talk first, for ever if it likes.
            tool_choice: forced.filter(|_| !prompted).map(|_| "none"),
            response_format: forced.map(prompted::format),
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
    fn prompted(&self, request: &ChatRequest) -> bool {
        request.tool_role != ToolRole::Native && self.prompts_tools()
    }

    fn attempt(
        &self,
        request: &ChatRequest,
        (body, prompted): (&[u8], bool),
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, Failed> {
        let exchange = self.server.link.exchange(cancel, self.server.timing.first);
        let response = exchange.post("/v1/chat/completions", body)?;
        let status = response.status().as_u16();
        if status != 200 {
            exchange.patience.shorten(self.server.timing.probe);
            let body = exchange.whole(response, 1024 * 1024)?;
            let refused = refusal::of_status(status, &body);
            return Err(match status {
                _ if refusal::is_loading(status, &body) => Failed::Loading,
                // llama-server's own 500 is about the request, and comes again.
                502..=504 => Failed::Gateway(refused),
                _ if refusal::is_about_tools(&refused) => refused.into(),
                500 if !self.capabilities.llama => Failed::Gateway(refused),
                _ => refused.into(),
            });
        }
        // A forced answer is arguments and nothing else.
        let tools = if request.force.is_some() { &[] } else { &*request.tools };
        let answer = Answer::new(Sieve::new(tools, prompted));
        let mut turn = stream::answer(&exchange, response, &self.server.timing, answer, sink)?;
        if let Some(tool) = request.forced() {
            turn = prompted::forced(&tool.name, turn);
        }
        Ok(turn)
    }
}

/// Bytes of everything in a request that the model reads.
fn bytes(request: &ChatRequest) -> usize {
    let message = |message: &Message| {
        let calls: usize = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        message.content.len() + calls + message.tool_result.as_ref().map_or(0, |result| result.output.len())
    };
    let tool = |tool: &ToolDef| tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    request.system.len()
        + request.messages.iter().map(message).sum::<usize>()
        + request.tools.iter().map(tool).sum::<usize>()
}

impl Provider for OpenAi {
    fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        let waiting = &mut |place| sink(Delta::Progress(Progress::Queued { place }));
        let session = request.session.as_ref();
        let _permit =
            self.server.slots.take(session, cancel, waiting).map_err(|no_place| match no_place {
                NoPlace::Cancelled => ProviderError::Cancelled,
                NoPlace::Closed => ProviderError::Unreachable {
                    endpoint: self.server.link.base().to_owned(),
                    started: false,
                    source: std::io::Error::new(
                        std::io::ErrorKind::NotConnected,
                        "the server is being stopped",
                    ),
                },
            })?;
        if let Some(kept) = &self.server.kept {
            kept.bring(&self.server.link, session, cancel);
        }
        let (mut max_tokens, mut prompted) = (self.max_tokens(request), self.prompted(request));
        let (mut body, mut lowered, mut again) = (self.body(request, max_tokens, prompted), false, false);
        let (start, mut wait) = (Instant::now(), Duration::from_millis(50));
        loop {
            match self.attempt(request, (&body, prompted), cancel, sink) {
                Ok(mut turn) => {
                    self.look_for_truncation(request, &mut turn);
                    self.weigh(request, &turn);
                    return Ok(turn);
                }
                Err(Failed::Error(error))
                    if !prompted
                        && request.tool_role != ToolRole::Native
                        && !request.tools.is_empty()
                        && refusal::is_about_tools(&error) =>
                {
                    tracing::info!(model = self.model, %error, "tools are told in plain text from now on");
                    self.refuses_tools.store(true, SeqCst);
                    prompted = true;
                    body = self.body(request, max_tokens, prompted);
                }
                // vLLM counts what the answer may take: the prompt alone fits.
                Err(Failed::Error(ProviderError::Overflow { prompt_tokens, window }))
                    if !self.capabilities.llama
                        && !lowered
                        && prompt_tokens > window
                        && prompt_tokens - window < max_tokens =>
                {
                    lowered = true;
                    max_tokens -= prompt_tokens - window;
                    body = self.body(request, max_tokens, prompted);
                }
                Err(Failed::Loading) if start.elapsed() < self.server.timing.load => {
                    sink(Delta::Progress(Progress::Loading { model: self.model.clone(), fraction: None }));
                    if !pause(cancel, wait) {
                        return Err(ProviderError::Cancelled);
                    }
                    wait = (wait * 2).min(Duration::from_secs(1));
                }
                Err(Failed::Loading) => {
                    let message = "it has been loading its model for too long".to_owned();
                    return Err(ProviderError::Status { status: 503, message });
                }
                Err(Failed::Gateway(_)) if !again => {
                    again = true;
                    if !pause(cancel, self.server.timing.backoff) {
                        return Err(ProviderError::Cancelled);
                    }
                }
                Err(Failed::Error(error) | Failed::Gateway(error)) => {
                    if matches!(error, ProviderError::Unreachable { .. }) {
                        self.server.set_good(false);
                    }
                    return Err(error);
                }
            }
        }
    }

    fn count_tokens(&self, texts: &[&str], cancel: &Cancel) -> Vec<u32> {
        if self.capabilities.llama && !cancel.is_cancelled() {
            let path = match self.capabilities.engine {
                Engine::LlamaSwap => engine::upstream(&self.model, "/tokenize"),
                _ => "/tokenize".to_owned(),
            };
            self.server.counts.count(&self.server.link, &path, &self.model, texts, cancel)
        } else {
            texts.iter().map(|text| self.weight.estimate(text.len())).collect()
        }
    }

    fn template_tokens(&self, messages: usize, cancel: &Cancel) -> u32 {
        if self.capabilities.engine != Engine::LlamaCpp || cancel.is_cancelled() {
            return 0;
        }
        let measured =
            self.overhead.get_or_init(|| Overhead::measure(&self.server.link, &self.model, cancel));
        measured.map_or(0, |overhead| overhead.of(messages))
    }

    fn window(&self) -> Option<u32> {
        self.capabilities.window
    }

    fn can_force(&self) -> bool {
        self.capabilities.llama
    }

    fn prompts_tools(&self) -> bool {
        !self.capabilities.tool_role || self.refuses_tools.load(SeqCst)
    }

    fn slots(&self) -> usize {
        self.server.slots.limit()
    }
}
