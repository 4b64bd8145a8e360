//! The scripted model server: a child process that answers as [`Script`] says and reports each request.

use std::{
    borrow::Cow,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Failure, clock,
    http::{self, Events, Request},
    script::Script,
};

/// The facts that the server reports about one chat request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The time at which the last byte of the request arrived, from [`clock::now`].
    pub arrived: u64,
    pub body_bytes: usize,
    /// The size of the system prompt and the tools as JSON, in bytes.
    pub fixed_bytes: usize,
}

/// A running server. It is stopped when this is dropped.
pub(crate) struct Server {
    pub address: SocketAddr,
    records: mpsc::Receiver<Record>,
    child: Child,
    /// The child exits when this pipe closes, which also happens if this process is killed.
    _lifeline: Option<ChildStdin>,
}

impl Server {
    /// Starts a server with a context window of `window` tokens.
    pub(crate) fn start(window: u32) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--serve", &window.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let lifeline = child.stdin.take();
        let address = lines.next().ok_or("the model server said nothing")??.parse()?;
        let (send, records) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Ok(record) = serde_json::from_str(&line) else { break };
                if send.send(record).is_err() {
                    break;
                }
            }
        });
        Ok(Self { address, records, child, _lifeline: lifeline })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the next request in the log. Call it once for each run, in order.
    pub(crate) fn record(&self) -> Result<Record, Failure> {
        let timeout = Duration::from_secs(10);
        self.records.recv_timeout(timeout).map_err(|_| "no request reached the model server".into())
    }

    /// Discards the log.
    pub(crate) fn forget(&self) {
        // A record is written after the last byte of the answer, so it may not have arrived yet.
        while self.records.recv_timeout(Duration::from_millis(20)).is_ok() {}
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Serves until stdin ends. This runs in the child process.
pub(crate) fn serve(window: &str) -> Result<(), Failure> {
    let window: u32 = window.parse()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", listener.local_addr()?)?;
    stdout.flush()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that disconnects does not affect the others.
            thread::spawn(move || connection(&stream, window).ok());
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn connection(stream: &TcpStream, window: u32) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(256 * 1024, stream);
    while let Some(request) = Request::read(&mut reader)? {
        answer(stream, &request, window)?;
        if request.close {
            break;
        }
    }
    Ok(())
}

fn answer(stream: &TcpStream, request: &Request, window: u32) -> io::Result<()> {
    let arrived = clock::now();
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("GET", "/health" | "/v1/health") => http::reply(stream, 200, r#"{"status":"ok"}"#),
        ("GET", "/models" | "/v1/models") => {
            http::reply(stream, 200, r#"{"object":"list","data":[{"id":"t1d0","object":"model"}]}"#)
        }
        // No `model_path`: the scripts are models of this server, and a server with one file would make each run print a notice.
        ("GET", "/props") => http::reply(
            stream,
            200,
            &format!(
                r#"{{"default_generation_settings":{{"n_ctx":{window}}},"total_slots":256,"chat_template":"","build_info":"scripted"}}"#
            ),
        ),
        // A hostile page: many elements and little text.
        ("GET", "/page") => {
            let page = format!("<!doctype html><title>list</title><ul>{}", "<li>a".repeat(380_000));
            http::reply_with(stream, 200, "text/html", &page)
        }
        ("POST", "/tokenize") => http::reply(stream, 200, &tokenize(&request.body)),
        ("POST", "/v1/chat/completions") => chat(stream, &request.body, arrived),
        _ => http::reply(stream, 404, r#"{"error":{"code":404,"message":"not here"}}"#),
    }
}

/// Tokenizes text as four bytes per token. As in llama-server, numbers are tokens already. kontekst puts -1 between two
/// texts to tell their tokens apart.
fn tokenize(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Question<'a> {
        #[serde(borrow)]
        content: Content<'a>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content<'a> {
        One(#[serde(borrow)] Piece<'a>),
        Many(#[serde(borrow)] Vec<Piece<'a>>),
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Piece<'a> {
        Text(#[serde(borrow)] Cow<'a, str>),
        Token(i64),
    }
    let pieces = match serde_json::from_slice::<Question>(body).map(|question| question.content) {
        Ok(Content::One(piece)) => vec![piece],
        Ok(Content::Many(pieces)) => pieces,
        Err(_) => Vec::new(),
    };
    let mut tokens = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => tokens.push_str(&"7,".repeat(text.len().div_ceil(4))),
            Piece::Token(token) => tokens.push_str(&format!("{token},")),
        }
    }
    format!(r#"{{"tokens":[{}]}}"#, tokens.trim_end_matches(','))
}

fn chat(stream: &TcpStream, body: &[u8], arrived: u64) -> io::Result<()> {
    #[derive(Deserialize)]
    struct Chat<'a> {
        #[serde(borrow, default)]
        model: Cow<'a, str>,
        #[serde(borrow)]
        messages: Vec<Message<'a>>,
        #[serde(borrow)]
        tools: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        role: Cow<'a, str>,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    let Ok(chat) = serde_json::from_slice::<Chat>(body) else {
        return http::reply(stream, 400, r#"{"error":{"code":400,"message":"not a chat request"}}"#);
    };
    let mut events = Events::open(stream)?;
    // Like `tokenize`: a server whose counts do not agree is asked again by kontekst.
    let prompt_tokens = body.len().div_ceil(4);
    Script::of(&chat.model).play(&chat.model, prompt_tokens, |event| events.put(event))?;
    events.close()?;

    let bytes = |text: Option<&RawValue>| text.map_or(0, |text| text.get().len());
    let system = chat.messages.iter().filter(|message| message.role == "system");
    let record = Record {
        arrived,
        body_bytes: body.len(),
        fixed_bytes: bytes(chat.tools) + system.map(|message| bytes(message.content)).sum::<usize>(),
    };
    let line = serde_json::to_string(&record).map_err(io::Error::other)?;
    writeln!(io::stdout(), "{line}")
}
