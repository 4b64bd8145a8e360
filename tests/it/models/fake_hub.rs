//! A web server that answers what a test tells it to, including faults.

use serde_json::Value;
use sha2::Digest as _;

use crate::fake_llama::{FakeLlama, Reply, Request};

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

    fn reply(self) -> Reply {
        let mut head = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", self.status);
        if !self.headers.iter().any(|(name, _)| name == "content-length") {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let sent = &self.body[..self.cut.min(self.body.len())];
        let reply = Reply::raw([head.as_bytes(), b"\r\n", sent].concat());
        if self.hang { reply.then_hang() } else { reply }
    }
}

/// Returns the answer of a correct server: a range if the file is unchanged, else the whole file.
pub(super) fn ranged(seen: &Request, content: &[u8], etag: &str) -> HubResponse {
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

/// Starts a server that answers each request with what `answer` returns.
pub(super) fn hub(mut answer: impl FnMut(&Request) -> HubResponse + Send + 'static) -> FakeLlama {
    FakeLlama::start([]).replay(move |request| Some(answer(request).reply()))
}
