//! A web server that answers what a test tells it to, including faults.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;
use sha2::Digest as _;

/// A request that was received. Header names are in lower case.
#[derive(Clone, Debug)]
pub(super) struct HubRequest {
    pub path: String,
    headers: Vec<(String, String)>,
}

impl HubRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone)]
pub(super) struct HubResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The bytes of the body that are sent.
    cut: usize,
    hang: bool,
}

impl HubResponse {
    pub(super) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), cut: usize::MAX, hang: false }
    }

    pub(super) fn bytes(bytes: &[u8]) -> Self {
        Self { body: bytes.to_vec(), ..Self::status(200) }
    }

    pub(super) fn json(value: &Value) -> Self {
        Self::bytes(value.to_string().as_bytes())
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self::status(302).header("location", to)
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Sends only this many bytes of the announced body.
    pub(super) fn cut(self, bytes: usize) -> Self {
        Self { cut: bytes, ..self }
    }

    /// Keeps the connection open after the body until the client closes it.
    pub(super) fn hang(self) -> Self {
        Self { hang: true, ..self }
    }
}

/// Returns the answer of a correct server: a range if the file is unchanged, else the whole file.
pub(super) fn ranged(seen: &HubRequest, content: &[u8], etag: &str) -> HubResponse {
    let start = seen
        .header("range")
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let same = seen.header("if-range").is_none_or(|condition| condition == etag);
    match start.filter(|_| same) {
        None => HubResponse::bytes(content).header("etag", etag),
        Some(start) if start >= content.len() => {
            HubResponse::status(416).header("content-range", &format!("bytes */{}", content.len()))
        }
        Some(start) => HubResponse { status: 206, ..HubResponse::bytes(&content[start..]) }
            .header("etag", etag)
            .header("content-range", &format!("bytes {start}-{}/{}", content.len() - 1, content.len())),
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) struct FakeHub {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<HubRequest>>>,
}

impl FakeHub {
    pub(super) fn start(mut answer: impl FnMut(&HubRequest) -> HubResponse + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let web = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let seen = Arc::clone(&web.seen);
        // The thread lives as long as the process of the tests. It costs nothing while it waits.
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let Some(request) = read(&connection) else { continue };
                seen.lock().unwrap().push(request.clone());
                let answer = answer(&request);
                thread::spawn(move || send(connection, &answer));
            }
        });
        web
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<HubRequest> {
        self.seen.lock().unwrap().clone()
    }
}

fn read(connection: &TcpStream) -> Option<HubRequest> {
    let mut lines = BufReader::new(connection).lines().map_while(Result::ok);
    let path = lines.next()?.split_whitespace().nth(1)?.to_owned();
    let headers = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    Some(HubRequest { path, headers })
}

fn send(mut connection: TcpStream, answer: &HubResponse) {
    let mut head = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", answer.status);
    if !answer.headers.iter().any(|(name, _)| name == "content-length") {
        head.push_str(&format!("content-length: {}\r\n", answer.body.len()));
    }
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    // The client may close the connection at any time.
    connection.write_all(head.as_bytes()).ok();
    connection.write_all(&answer.body[..answer.cut.min(answer.body.len())]).ok();
    if answer.hang {
        connection.read_exact(&mut [0; 1]).ok();
    }
}
