//! A scripted model server. It answers what a test tells it to, records the requests, and refuses what a real server
//! would refuse.
//!
//! ```ignore
//! let fake = FakeLlama::start([Reply::calls([("read_file", json!({"path": "a"}))]), Reply::text("done")]);
//! // … talk to fake.url() …
//! assert_eq!(fake.chats().len(), 2);
//! ```
//!
//! A request that a real server would refuse, and one after the end of the script, fail the test when the server is dropped.
#![allow(dead_code, reason = "shared by tests that do not all use everything")]
#![allow(clippy::unwrap_used, reason = "only tests run it")]

pub(crate) mod process;
mod reply;
mod validate;

use std::{
    collections::VecDeque,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use reply::Client;
pub(crate) use reply::{Gate, GateKey, Reply, gate};
use serde_json::{Value, json};

/// The time that a test waits for a request before it fails. It is generous, because the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The properties that the server reports.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The context window in tokens, in `/props`.
    pub window: u32,
    /// The number of slots, in `/props`.
    pub slots: usize,
    pub model_path: String,
    /// Its chat template supports tools.
    pub tools: bool,
    /// Its model takes images, in `/props`. `None` says nothing about it.
    pub vision: Option<bool>,
    /// If false, it is another OpenAI-compatible server, without `/props` and `/tokenize`.
    pub llama: bool,
    /// The bearer token that every path but `/health` requires.
    pub key: Option<String>,
    /// The address to listen on. Port 0 means any free port.
    pub address: SocketAddr,
    /// Answers everything with 503 until [`FakeLlama::finish_loading`].
    pub loading: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            window: 16_384,
            slots: 1,
            model_path: "/models/fake.gguf".to_owned(),
            tools: true,
            vision: None,
            llama: true,
            key: None,
            address: ([127, 0, 0, 1], 0).into(),
            loading: false,
        }
    }
}

/// A request that was received. Header names are in lower case. `body` is null if it was not JSON.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
    pub raw: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_chat(&self) -> bool {
        self.path == "/v1/chat/completions"
    }
}

/// A running server. It stops when it is dropped.
pub(crate) struct FakeLlama {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    setup: Setup,
    state: Mutex<State>,
    changed: Condvar,
    stopped: AtomicBool,
    loading: AtomicBool,
    /// Bytes of all bodies that were sent.
    sent: AtomicU64,
}

type Replayer = Box<dyn FnMut(&Request) -> Option<Reply> + Send>;
type Answerer = Box<dyn FnMut(&Request) -> Reply + Send>;

#[derive(Default)]
struct State {
    script: VecDeque<Reply>,
    /// Answers every chat request after the end of the script.
    fallback: Option<Answerer>,
    /// Is asked before everything else, for every path.
    replay: Option<Replayer>,
    requests: Vec<Request>,
    violations: Vec<String>,
    disconnects: usize,
}

impl FakeLlama {
    /// Starts a server that answers chat requests with `script`, in order. A further chat request is a violation.
    pub(crate) fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(Setup::default(), script)
    }

    pub(crate) fn with(setup: Setup, script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind(setup.address).expect("the port is free");
        let address = listener.local_addr().unwrap();
        let loading = setup.loading;
        let state = State { script: script.into_iter().collect(), ..State::default() };
        let shared = Arc::new(Shared {
            setup,
            state: Mutex::new(state),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
            loading: AtomicBool::new(loading),
            sent: AtomicU64::new(0),
        });
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming() {
                if server.stopped.load(SeqCst) {
                    return;
                }
                let (Ok(connection), server) = (connection, Arc::clone(&server)) else { continue };
                thread::spawn(move || server.serve(connection));
            }
        });
        Self { address, shared }
    }

    /// Answers every chat request after the end of the script with `reply`.
    pub(crate) fn always(self, reply: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        self.shared.state.lock().unwrap().fallback = Some(Box::new(reply));
        self
    }

    /// Asks `reply` for each request first, before it is validated.
    pub(crate) fn replay(self, reply: impl FnMut(&Request) -> Option<Reply> + Send + 'static) -> Self {
        self.shared.state.lock().unwrap().replay = Some(Box::new(reply));
        self
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the loading that [`Setup::loading`] began.
    pub(crate) fn finish_loading(&self) {
        self.shared.loading.store(false, SeqCst);
    }

    /// Adds an answer to the end of the script.
    pub(crate) fn push(&self, reply: Reply) {
        self.shared.state.lock().unwrap().script.push_back(reply);
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    /// Returns the bodies of the chat requests so far.
    pub(crate) fn chats(&self) -> Vec<Value> {
        self.requests().into_iter().filter(Request::is_chat).map(|request| request.body).collect()
    }

    /// Returns the results of calls that the last chat request has.
    pub(crate) fn results(&self) -> Vec<String> {
        texts_of("tool", self.chats().last().unwrap())
    }

    /// Waits until `count` chat requests have come.
    #[track_caller]
    pub(crate) fn wait_for_chats(&self, count: usize) {
        self.wait("chat requests", |state| {
            state.requests.iter().filter(|request| request.is_chat()).count() >= count
        });
    }

    /// Waits until a client has disconnected in the middle of an answer.
    #[track_caller]
    pub(crate) fn wait_for_disconnect(&self) {
        self.wait("a hang-up", |state| state.disconnects > 0);
    }

    /// Returns how often a client has disconnected in the middle of an answer.
    pub(crate) fn disconnects(&self) -> usize {
        self.shared.state.lock().unwrap().disconnects
    }

    /// Returns how many bytes of bodies were sent so far. What a client did not read may still be in the kernel's
    /// buffers.
    pub(crate) fn bytes_sent(&self) -> u64 {
        self.shared.sent.load(SeqCst)
    }

    #[track_caller]
    fn wait(&self, what: &str, met: impl Fn(&State) -> bool) {
        let state = self.shared.state.lock().unwrap();
        let (state, result) =
            self.shared.changed.wait_timeout_while(state, TIMEOUT, |state| !met(state)).unwrap();
        drop(state);
        assert!(!result.timed_out(), "waited in vain for {what}");
    }
}

impl Drop for FakeLlama {
    fn drop(&mut self) {
        self.shared.stopped.store(true, SeqCst);
        drop(TcpStream::connect(self.address)); // wakes `accept`, and the listener is closed
        if !thread::panicking() {
            let violations = &self.shared.state.lock().unwrap().violations;
            assert!(violations.is_empty(), "{violations:#?}");
        }
    }
}

impl Shared {
    /// Serves one request and closes the connection, as llama-server does after a stream.
    fn serve(&self, mut connection: TcpStream) {
        connection.set_nodelay(true).unwrap();
        let Ok(Some(request)) = read(&connection) else { return };
        let reply = self.reply(&request);
        // The question for the kind of work takes no reply of the script and is no chat of the conversation.
        if !asks_for_kind(&request.body) {
            let mut state = self.state.lock().unwrap();
            state.requests.push(request.clone());
            self.changed.notify_all();
        }
        let finished = AtomicBool::new(false);
        let client = Client::default();
        thread::scope(|scope| {
            let mut watched = connection.try_clone().unwrap();
            let (client, finished) = (&client, &finished);
            scope.spawn(move || {
                // The client sends nothing more, so this ends when one of the two sides closes the connection.
                while matches!(watched.read(&mut [0; 64]), Ok(1..)) {}
                client.disconnect();
                if !finished.load(SeqCst) {
                    self.state.lock().unwrap().disconnects += 1;
                    self.changed.notify_all();
                }
            });
            reply.send(&request, &mut connection, client, finished, &self.sent).ok();
            connection.flush().ok();
            connection.shutdown(std::net::Shutdown::Both).ok();
        });
    }

    fn reply(&self, request: &Request) -> Reply {
        if let Some(reply) = self.state.lock().unwrap().replay.as_mut().and_then(|replay| replay(request)) {
            return reply;
        }
        let setup = &self.setup;
        let path = request.path.split('?').next().unwrap_or("");
        if self.loading.load(SeqCst) {
            return Reply::loading(); // llama-server does not check the key while it loads
        }
        let bearer = setup.key.as_ref().map(|key| format!("Bearer {key}"));
        if path != "/health" && bearer.is_some() && request.header("authorization") != bearer.as_deref() {
            return Reply::error(401, "Invalid API GateKey");
        }
        match (request.method.as_str(), path) {
            ("GET", "/health") => Reply::json(200, &json!({"status": "ok"})),
            ("GET", "/props") if setup.llama => Reply::json(200, &props(setup)),
            ("GET", "/v1/models") => Reply::json(
                200,
                &json!({"object": "list", "data": [{
                    "id": "fake", "object": "model", "owned_by": "fake", "max_model_len": setup.window,
                }]}),
            ),
            ("POST", "/tokenize") if setup.llama => tokenize_reply(&request.body),
            ("POST", "/v1/chat/completions") => self.chat(request),
            _ => Reply::error(404, "File Not Found"),
        }
    }

    fn chat(&self, request: &Request) -> Reply {
        let mut state = self.state.lock().unwrap();
        if let Err(violation) = validate::chat(&request.body) {
            let answer = Reply::error(400, &violation);
            state.violations.push(format!("{violation}\n{:#}", request.body));
            return answer;
        }
        if asks_for_kind(&request.body) {
            return Reply::text("{\"kind\": \"read\"}");
        }
        if let Some(reply) = state.script.pop_front() {
            return reply;
        }
        if let Some(mut fallback) = state.fallback.take() {
            let reply = fallback(request);
            state.fallback = Some(fallback);
            return reply;
        }
        state.violations.push("a chat request after the end of the script".to_owned());
        Reply::error(500, "the script is over")
    }
}

/// Returns true if a model in steps is asked what kind of work it has to do.
fn asks_for_kind(chat: &Value) -> bool {
    chat["response_format"]["json_schema"]["name"] == "kind"
}

/// Returns the texts of the user in a chat.
pub(crate) fn user_texts(chat: &Value) -> Vec<String> {
    texts_of("user", chat)
}

/// Returns the texts of the messages of a chat that have this role.
fn texts_of(role: &str, chat: &Value) -> Vec<String> {
    let messages = chat["messages"].as_array().unwrap().iter().filter(|message| message["role"] == role);
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

fn props(setup: &Setup) -> Value {
    let mut props = json!({
        "default_generation_settings": {"n_ctx": setup.window},
        "total_slots": setup.slots,
        "model_path": setup.model_path,
        "chat_template": "",
        "chat_template_caps": {"supports_tools": setup.tools, "supports_tool_calls": setup.tools},
        "build_info": "fake",
    });
    if let Some(vision) = setup.vision {
        props["modalities"] = json!({"vision": vision, "audio": false});
    }
    props
}

/// Tokenizes text as four bytes per token. Numbers are tokens already, as in llama-server.
fn tokenize_reply(body: &Value) -> Reply {
    let pieces = match &body["content"] {
        Value::Array(pieces) => pieces.clone(),
        piece => vec![piece.clone()],
    };
    let mut tokens = Vec::new();
    for piece in &pieces {
        match piece {
            Value::String(text) => tokens.extend(vec![json!(1); text.len().div_ceil(4)]),
            number => tokens.push(number.clone()),
        }
    }
    Reply::json(200, &json!({"tokens": tokens}))
}

fn read(connection: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut raw = vec![0; length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut raw)?;
    let body = serde_json::from_slice(&raw).unwrap_or_default();
    Ok(Some(Request { method, path, headers, body, raw }))
}
