//! Answers of the fake server, built step by step.

use std::{
    io::{self, Write as _},
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::Request;

/// An answer to one request.
pub(crate) struct Reply {
    status: u16,
    content_type: &'static str,
    steps: Vec<Step>,
    streamed: bool,
    finish: Option<&'static str>,
    usage: Option<(u32, u32, u32)>,
    after: Option<Inspector>,
}

type Inspector = Box<dyn FnOnce(&Request) + Send>;

enum Step {
    /// Sends one event in one chunk.
    Event(Value),
    /// Sends bytes of the body, as a chunk if the answer is a stream.
    Bytes(Vec<u8>),
    /// Sends the same bytes many times.
    Repeat(Vec<u8>, usize),
    Wait(Gate),
    /// Sends nothing for this long.
    Pause(Duration),
    /// Sends nothing more until the client disconnects.
    Hang,
    /// Closes the connection without an ending, as a killed server does.
    Cut,
    /// Closes the sending direction and keeps the connection open for reading.
    HalfClose,
}

/// Holds an answer back until the test opens it with the [`GateKey`], or the client disconnects.
pub(crate) struct Gate(Arc<Signal>);

/// Opens a [`Gate`] when `open` is called, or when it is dropped.
pub(crate) struct GateKey(Arc<Signal>);

impl GateKey {
    pub(crate) fn open(self) {
        drop(self);
    }
}

impl Drop for GateKey {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// Returns a closed gate and its key.
pub(crate) fn gate() -> (Gate, GateKey) {
    let signal = Arc::<Signal>::default();
    (Gate(Arc::clone(&signal)), GateKey(signal))
}

/// A flag that one thread raises and another waits for.
#[derive(Default)]
struct Signal {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn raise(&self) {
        *self.raised.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        drop(self.changed.wait_while(self.raised.lock().unwrap(), |raised| !*raised).unwrap());
    }
}

/// The client of one connection, as far as an answer needs to know.
#[derive(Default)]
pub(super) struct Client {
    state: Mutex<ClientState>,
}

#[derive(Default)]
struct ClientState {
    disconnected: bool,
    /// The signal that the answer is waiting for.
    waiting: Option<Arc<Signal>>,
}

impl Client {
    /// Ends the current and every later wait of the answer.
    pub(super) fn disconnect(&self) {
        let mut state = self.state.lock().unwrap();
        state.disconnected = true;
        if let Some(signal) = state.waiting.take() {
            signal.raise();
        }
    }

    /// Waits until `signal` is raised or the client disconnects.
    fn wait(&self, signal: &Arc<Signal>) {
        {
            let mut state = self.state.lock().unwrap();
            if state.disconnected {
                return;
            }
            state.waiting = Some(Arc::clone(signal));
        }
        signal.wait();
    }
}

impl Reply {
    fn new(status: u16, content_type: &'static str, streamed: bool) -> Self {
        Self { status, content_type, steps: Vec::new(), streamed, finish: None, usage: None, after: None }
    }

    fn stream() -> Self {
        Self { finish: Some("stop"), usage: Some((10, 5, 0)), ..Self::new(200, "text/event-stream", true) }
    }

    /// Streams a text with one event for each word.
    pub(crate) fn text(text: &str) -> Self {
        Self::stream().then_text(text)
    }

    /// Streams reasoning, then a text.
    pub(crate) fn reasoning(reasoning: &str, text: &str) -> Self {
        Self::stream().then_delta(&json!({"reasoning_content": reasoning})).then_text(text)
    }

    /// Streams tool calls with the ids `call_0`, `call_1`, … and arguments in two pieces.
    pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        Self::stream().then_calls(calls)
    }

    /// Streams these deltas.
    pub(crate) fn deltas(deltas: impl IntoIterator<Item = Value>) -> Self {
        deltas.into_iter().fold(Self::stream(), |reply, delta| reply.then_delta(&delta))
    }

    /// Answers with an error status in llama-server's form.
    pub(crate) fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({"error": {"code": status, "message": message, "type": "server_error"}}))
    }

    /// Refuses a prompt that does not fit into the window.
    pub(crate) fn overflow(prompt_tokens: u32, window: u32) -> Self {
        let message = format!("request ({prompt_tokens} tokens) exceeds the available context size");
        Self::json(
            400,
            &json!({"error": {"code": 400, "message": message, "type": "exceed_context_size_error",
                "n_prompt_tokens": prompt_tokens, "n_ctx": window}}),
        )
    }

    /// Answers 503, as llama-server does while it loads the model.
    pub(crate) fn loading() -> Self {
        Self::json(
            503,
            &json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
        )
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", false).then_bytes(body.to_string())
    }

    /// Accepts the request and sends nothing, not even a status line.
    pub(crate) fn hang() -> Self {
        Self { status: 0, ..Self::new(0, "", false) }.then(Step::Hang)
    }

    /// Sends these bytes as the whole answer, including the HTTP head.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(0, "", false).then_bytes(bytes)
    }

    /// Sends this body without an ending.
    pub(crate) fn body(content_type: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(200, content_type, true).then_bytes(bytes)
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(crate) fn then_text(mut self, text: &str) -> Self {
        for word in text.split_inclusive(' ') {
            self = self.then_delta(&json!({"content": word}));
        }
        self
    }

    pub(crate) fn then_calls<'a>(mut self, calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        self.finish = Some("tool_calls");
        for (index, (name, arguments)) in calls.into_iter().enumerate() {
            let text = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            let cut =
                (text.len() / 2..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
            let function = json!({"name": name, "arguments": text[..cut]});
            let begin = json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function});
            let end = json!({"index": index, "function": {"arguments": text[cut..]}});
            self = self.then_delta(&json!({"tool_calls": [begin]})).then_delta(&json!({"tool_calls": [end]}));
        }
        self
    }

    pub(crate) fn then_delta(self, delta: &Value) -> Self {
        self.then_event(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
    }

    pub(crate) fn then_event(self, event: Value) -> Self {
        self.then(Step::Event(event))
    }

    /// Reports how much of the prompt has been processed.
    pub(crate) fn then_progress(self, processed: u32, total: u32) -> Self {
        let progress = json!({"processed": processed, "total": total, "cache": 0, "time_ms": 1});
        self.then_event(json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": null}}],
            "prompt_progress": progress}))
    }

    pub(crate) fn then_bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Bytes(bytes.into()))
    }

    pub(crate) fn then_repeat(self, bytes: impl Into<Vec<u8>>, times: usize) -> Self {
        self.then(Step::Repeat(bytes.into(), times))
    }

    /// Waits here until the gate is opened or the client disconnects.
    pub(crate) fn then_wait(self, gate: Gate) -> Self {
        self.then(Step::Wait(gate))
    }

    /// Sends nothing for this long, as a slow server does.
    pub(crate) fn then_pause(self, pause: Duration) -> Self {
        self.then(Step::Pause(pause))
    }

    pub(crate) fn then_hang(self) -> Self {
        self.then(Step::Hang)
    }

    /// Closes the connection here, as a killed server does.
    pub(crate) fn then_cut(self) -> Self {
        self.then(Step::Cut)
    }

    pub(crate) fn then_half_close(self) -> Self {
        self.then(Step::HalfClose)
    }

    /// Sends the error that llama-server sends within a stream.
    pub(crate) fn then_error(mut self, status: u16, message: &str) -> Self {
        self.finish = None;
        self.then_event(json!({"error": {"code": status, "message": message, "type": "server_error"}}))
    }

    /// Sets the finish reason. Without this it is `stop` or `tool_calls`.
    pub(crate) fn finish(mut self, reason: &'static str) -> Self {
        self.finish = Some(reason);
        self
    }

    /// Ends the stream without a finish reason, usage or `[DONE]`.
    pub(crate) fn unfinished(mut self) -> Self {
        self.finish = None;
        self
    }

    pub(crate) fn usage(mut self, prompt: u32, completion: u32, cached: u32) -> Self {
        self.usage = Some((prompt, completion, cached));
        self
    }

    /// Calls `inspect` with the request before anything is sent.
    pub(crate) fn after(mut self, inspect: impl FnOnce(&Request) + Send + 'static) -> Self {
        self.after = Some(Box::new(inspect));
        self
    }

    /// Sends the answer. Sets `finished` before the last part, so that a client that disconnects after it
    /// is not counted as one that disconnected in the middle. Adds what was sent of the body to `sent`.
    pub(super) fn send(
        self,
        request: &Request,
        to: &mut TcpStream,
        client: &Client,
        finished: &AtomicBool,
        sent: &AtomicU64,
    ) -> io::Result<()> {
        if let Some(inspect) = self.after {
            inspect(request);
        }
        if self.status != 0 {
            let framing = if self.streamed { "transfer-encoding: chunked" } else { "connection: close" };
            let (status, kind) = (self.status, self.content_type);
            write!(
                to,
                "HTTP/1.1 {status} Fake\r\nserver: fake\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n"
            )?;
        }
        let mut out = Out { to, chunked: self.streamed, sent };
        let last = self.steps.len().saturating_sub(1);
        for (at, step) in self.steps.into_iter().enumerate() {
            if at == last
                && self.finish.is_none()
                && matches!(step, Step::Event(_) | Step::Bytes(_) | Step::Cut)
            {
                finished.store(true, SeqCst);
            }
            match step {
                Step::Event(event) => out.event(&event)?,
                Step::Bytes(bytes) => out.bytes(&bytes)?,
                Step::Repeat(bytes, times) => (0..times).try_for_each(|_| out.bytes(&bytes))?,
                Step::Wait(gate) => client.wait(&gate.0),
                Step::Pause(pause) => thread::sleep(pause),
                Step::Hang => {
                    client.wait(&Arc::default());
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Step::Cut => return Ok(()),
                Step::HalfClose => {
                    out.to.shutdown(Shutdown::Write)?;
                    client.wait(&Arc::default());
                    return Ok(());
                }
            }
        }
        if let Some(reason) = self.finish {
            finished.store(true, SeqCst);
            out.event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))?;
            if let Some((prompt, completion, cached)) = self.usage {
                out.event(&json!({"choices": [], "usage": {
                    "prompt_tokens": prompt, "completion_tokens": completion,
                    "prompt_tokens_details": {"cached_tokens": cached}}}))?;
            }
            out.bytes(b"data: [DONE]\n\n")?;
        }
        if self.streamed {
            out.to.write_all(b"0\r\n\r\n")?;
        }
        Ok(())
    }
}

struct Out<'a> {
    to: &'a mut TcpStream,
    chunked: bool,
    sent: &'a AtomicU64,
}

impl Out<'_> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.bytes(format!("data: {event}\n\n").as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.chunked || bytes.is_empty() {
            self.to.write_all(bytes)?;
            self.sent.fetch_add(bytes.len() as u64, SeqCst);
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.to.write_all(&chunk)?;
        self.sent.fetch_add(bytes.len() as u64, SeqCst);
        Ok(())
    }
}
