//! Any server that speaks OpenAI's chat completions: llama-server first, vLLM, Ollama and gateways too.

mod answer;
mod http;
mod messages;
mod probe;
mod refusal;
mod sse;
mod stall;
mod tokens;
mod wire;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use ureq::{Body, http::Response};

pub use http::Link;
pub use probe::{Capabilities, Probe, probe};
pub use refusal::shown;
pub use stall::Patience;

use self::{
    answer::Answer,
    http::Exchange,
    messages::Dialect,
    sse::{Line, Lines},
    tokens::Counts,
};
use super::{
    ChatRequest, Delta, Progress, Provider, ProviderError, Turn,
    pause::pause,
    slots::{NoPlace, Slots},
};
use crate::core::Cancel;

/// Bytes that one answer may have: 64 MiB.
const RESPONSE_LIMIT: u64 = 64 * 1024 * 1024;

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
}

impl Server {
    pub fn new(link: Link, slots: usize, timing: Timing) -> Self {
        Self {
            link,
            slots: Slots::new(slots),
            counts: Counts::default(),
            good: AtomicBool::new(true),
            timing,
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
}

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
    Error(ProviderError),
}

impl From<ProviderError> for Failed {
    fn from(error: ProviderError) -> Self {
        Self::Error(error)
    }
}

impl OpenAi {
    pub fn new(server: Arc<Server>, model: &str, capabilities: Capabilities) -> Self {
        Self { server, model: wire_model(model).to_owned(), capabilities }
    }

    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    fn body(&self, request: &ChatRequest) -> Vec<u8> {
        let Capabilities { llama, tool_role, short_ids, .. } = self.capabilities;
        let dialect = Dialect { tool_role: request.tool_role && tool_role, reasoning: llama, short_ids };
        let sampling = &request.sampling;
        let request = wire::Request {
            model: &self.model,
            messages: &messages::wire(&request.system, &request.messages, dialect),
            tools: &messages::tools(&request.tools),
            max_tokens: request.max_tokens,
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

    fn attempt(&self, body: &[u8], cancel: &Cancel, sink: &mut dyn FnMut(Delta)) -> Result<Turn, Failed> {
        let exchange = self.server.link.exchange(cancel, self.server.timing.first);
        let response = exchange.post("/v1/chat/completions", body)?;
        let status = response.status().as_u16();
        if status != 200 {
            exchange.patience.shorten(self.server.timing.probe);
            let body = exchange.whole(response, 1024 * 1024)?;
            return Err(if refusal::is_loading(status, &body) {
                Failed::Loading
            } else {
                refusal::of_status(status, &body).into()
            });
        }
        match content(&response)? {
            Content::Stream => Ok(self.stream(&exchange, response, cancel, sink)?),
            Content::Whole => {
                let mut answer = Answer::default();
                answer.take(&exchange.whole(response, RESPONSE_LIMIT)?, sink)?;
                answer.flush(sink);
                Ok(finished(answer)?)
            }
        }
    }

    fn stream(
        &self,
        exchange: &Exchange<'_>,
        mut response: Response<Body>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        let timing = &self.server.timing;
        let mut reader = response.body_mut().as_reader();
        let (mut lines, mut answer, mut total) = (Lines::default(), Answer::default(), 0);
        loop {
            let count = match lines.fill(&mut reader) {
                Ok(count) => count,
                Err(_) if answer.finished() && !cancel.is_cancelled() => return Ok(answer.into_turn()),
                Err(error) => return Err(exchange.broken(error.into(), answer.started())),
            };
            total += count as u64;
            if total > RESPONSE_LIMIT {
                return Err(ProviderError::Protocol(format!("the answer is over {RESPONSE_LIMIT} bytes")));
            }
            let before = answer.state();
            let done = read(&mut lines, &mut answer, count == 0, sink);
            answer.flush(sink); // what came before an error, too
            let done = done?;
            if cancel.is_cancelled() {
                return Err(ProviderError::Cancelled);
            }
            if done || count == 0 && answer.finished() {
                return Ok(answer.into_turn());
            }
            if count == 0 {
                exchange.still_there(answer.started())?;
                return finished(answer);
            }
            match answer.state() {
                now if now == before => {} // comments and empty events keep nobody waiting for ever
                now if now.finished => exchange.patience.shorten(timing.last),
                now if !now.started => exchange.patience.renew(timing.first),
                _ if before.started => exchange.patience.renew(timing.between),
                _ => exchange.patience.shorten(timing.between),
            }
        }
    }
}

/// Takes the complete lines. Says whether the server has said that it is done.
fn read(
    lines: &mut Lines,
    answer: &mut Answer,
    ended: bool,
    sink: &mut dyn FnMut(Delta),
) -> Result<bool, ProviderError> {
    let too_long =
        |_| ProviderError::Protocol(format!("a line of the answer is over {} bytes", sse::LINE_LIMIT));
    while let Some(line) = lines.next_line().map_err(too_long)? {
        match Line::parse(line) {
            Line::Data(event) => answer.take(event, sink)?,
            Line::Done => return Ok(true),
            Line::Other => {}
        }
    }
    if !ended {
        return Ok(false);
    }
    match Line::parse(lines.rest()) {
        // A torn last event is not worth an error of its own: the missing ending is one.
        Line::Data(event) if serde_json::from_slice::<serde::de::IgnoredAny>(event).is_ok() => {
            answer.take(event, sink)?;
            Ok(false)
        }
        Line::Done => Ok(true),
        Line::Data(_) | Line::Other => Ok(false),
    }
}

fn finished(answer: Answer) -> Result<Turn, ProviderError> {
    if answer.finished() {
        Ok(answer.into_turn())
    } else {
        Err(ProviderError::Protocol("it ended before it was finished".to_owned()))
    }
}

enum Content {
    Stream,
    /// A server that does not stream although it was asked to.
    Whole,
}

fn content(response: &Response<Body>) -> Result<Content, ProviderError> {
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let encoding = header("content-encoding");
    if !matches!(encoding, "" | "identity") {
        return Err(ProviderError::Protocol(format!(
            "it is encoded as `{}`, which was not asked for",
            shown(encoding)
        )));
    }
    let kind = header("content-type").to_ascii_lowercase();
    match kind.split(';').next().unwrap_or("").trim() {
        "text/event-stream" | "" => Ok(Content::Stream),
        "application/json" => Ok(Content::Whole),
        other => Err(ProviderError::Protocol(format!("it is `{}`, not a stream of events", shown(other)))),
    }
}

impl Provider for OpenAi {
    fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        let waiting = &mut |place| sink(Delta::Progress(Progress::Queued { place }));
        let _permit = self.server.slots.take(cancel, waiting).map_err(|no_place| match no_place {
            NoPlace::Cancelled => ProviderError::Cancelled,
            NoPlace::Closed => ProviderError::Unreachable {
                endpoint: self.server.link.base().to_owned(),
                started: false,
                source: std::io::Error::new(std::io::ErrorKind::NotConnected, "the server is being stopped"),
            },
        })?;
        let body = self.body(request);
        let (start, mut wait) = (Instant::now(), Duration::from_millis(50));
        loop {
            match self.attempt(&body, cancel, sink) {
                Ok(turn) => return Ok(turn),
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
                Err(Failed::Error(error)) => {
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
            self.server.counts.count(&self.server.link, &self.model, texts, cancel)
        } else {
            texts.iter().map(|text| tokens::estimate(text)).collect()
        }
    }

    fn window(&self) -> Option<u32> {
        self.capabilities.window
    }

    fn slots(&self) -> usize {
        self.server.slots.limit()
    }
}
