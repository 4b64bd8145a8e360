//! One request and where it leads: redirects, what the answer says about the file, and hanging up.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use ureq::{
    Agent, Body,
    http::{HeaderMap, Response, header},
};
use url::Url;

use super::{DownloadConfig, PullError};
use crate::core::{Cancel, OnCancel};

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 8;
/// Largest head of an answer, in bytes.
const HEADER_LIMIT: usize = 64 * 1024;

/// Where a download goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResumePoint {
    /// Bytes that are here; not 0.
    pub have: u64,
    /// The strong validator of the file they are from.
    pub etag: Option<String>,
}

/// An answer that is no redirect.
pub(super) struct FileResponse {
    pub status: u16,
    /// Where it came from in the end.
    pub host: String,
    /// A strong validator.
    pub etag: Option<String>,
    /// The file's checksum, from the hub.
    pub sha256: Option<String>,
    /// Bytes of the whole file.
    pub total: Option<u64>,
    /// The first byte of a part.
    pub start: Option<u64>,
    encoded: bool,
    body: Body,
    watch: ConnectionWatch,
}

/// What hangs up: on a cancel, and when nothing has come for too long.
struct ConnectionWatch {
    cancel: Cancel,
    _hook: OnCancel,
    /// Each message is a sign of life; dropping it ends the watch.
    alive: mpsc::Sender<()>,
    silent: Arc<AtomicBool>,
}

impl ConnectionWatch {
    fn new(agent: &Agent, stall: Duration, cancel: &Cancel) -> Self {
        let (alive, signs) = mpsc::channel();
        let silent = Arc::new(AtomicBool::new(false));
        let (watched, ran_out) = (agent.clone(), Arc::clone(&silent));
        // Without the thread there is no limit on silence; Ctrl-C still works.
        let watch = move || {
            loop {
                match signs.recv_timeout(stall) {
                    Ok(()) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        ran_out.store(true, SeqCst);
                        return watched.shutdown();
                    }
                }
            }
        };
        thread::Builder::new().name("pull-stall".to_owned()).spawn(watch).ok();
        let hang_up = agent.clone();
        let hook = cancel.on_cancel(move || hang_up.shutdown());
        Self { cancel: cancel.clone(), _hook: hook, alive, silent }
    }

    /// Tells our own hanging up from other faults.
    fn explain(&self, error: ureq::Error) -> io::Error {
        if self.cancel.is_cancelled() {
            return io::ErrorKind::Interrupted.into();
        }
        if self.silent.load(SeqCst) {
            return io::Error::new(io::ErrorKind::TimedOut, "it has been silent for too long");
        }
        match error {
            ureq::Error::Io(error) => error,
            ureq::Error::Timeout(_) => io::ErrorKind::TimedOut.into(),
            ureq::Error::HostNotFound => io::Error::new(io::ErrorKind::NotFound, "no host of that name"),
            other => io::Error::other(other),
        }
    }
}

impl FileResponse {
    /// The next bytes of the body; 0 at its end.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let result = self.body.as_reader().read(into);
        // A body that ends with its connection looks whole when we hung up ourselves.
        if self.watch.cancel.is_cancelled() || self.watch.silent.load(SeqCst) {
            return Err(self.watch.explain(ureq::Error::ConnectionFailed));
        }
        self.watch.alive.send(()).ok();
        result.map_err(|error| self.watch.explain(error.into()))
    }

    pub fn is_encoded(&self) -> bool {
        self.encoded
    }
}

/// Asks for a file, or for the rest of it.
///
/// # Errors
///
/// `io::Error` for what may work another time, [`PullError`] within it for what will not.
pub(super) fn get(
    net: &DownloadConfig,
    url: &Url,
    from: Option<&ResumePoint>,
    cancel: &Cancel,
) -> Result<FileResponse, RequestError> {
    let agent = Agent::config_builder()
        .proxy(net.proxy.clone())
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        // What is counted and resumed is the file itself.
        .accept_encoding("identity")
        .user_agent(concat!("kontekst/", env!("CARGO_PKG_VERSION")))
        .max_response_header_size(HEADER_LIMIT)
        .max_idle_connections(0)
        .input_buffer_size(256 * 1024)
        .timeout_connect(Some(net.timing.connect))
        .timeout_resolve(Some(net.timing.connect))
        .build()
        .new_agent();
    let line = ConnectionWatch::new(&agent, net.timing.stall, cancel);
    let mut url = url.clone();
    let mut from_hub = None;
    for _ in 0..=MAX_REDIRECTS {
        let host = url.host_str().unwrap_or_default().to_owned();
        let broken =
            |fact: &str| RequestError::Final(PullError::Answer { host: host.clone(), fact: fact.to_owned() });
        let at_hub = url.origin() == net.hub.origin();
        let mut call = agent.get(url.as_str());
        if let Some(from) = from {
            call = call.header(header::RANGE, format!("bytes={}-", from.have));
            if let Some(etag) = &from.etag {
                call = call.header(header::IF_RANGE, etag);
            }
        }
        if let Some(token) = net.token.as_ref().filter(|_| at_hub) {
            call = call.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let response =
            call.call().map_err(|error| RequestError::Broken(host.clone(), line.explain(error)))?;
        line.alive.send(()).ok();
        if at_hub {
            from_hub = from_hub.or_else(|| hub_checksum(response.headers()));
        }
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(file_response(response, host, from_hub, line));
        }
        let target =
            text(response.headers(), "location").ok_or_else(|| broken("a redirect that leads nowhere"))?;
        let next = url.join(target).map_err(|_| broken("a redirect that leads nowhere"))?;
        if !matches!(next.scheme(), "http" | "https") || (url.scheme() == "https" && next.scheme() == "http")
        {
            return Err(broken("a redirect that leaves https"));
        }
        url = next;
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    Err(RequestError::Final(PullError::Answer { host, fact: format!("more than {MAX_REDIRECTS} redirects") }))
}

/// Why there is no answer.
pub(super) enum RequestError {
    /// From this host; another try may help.
    Broken(String, io::Error),
    Final(PullError),
}

fn file_response(
    response: Response<Body>,
    host: String,
    from_hub: Option<String>,
    line: ConnectionWatch,
) -> FileResponse {
    let headers = response.headers();
    let length = text(headers, "content-length").and_then(|length| length.parse().ok());
    let range = text(headers, "content-range").and_then(Range::parse);
    let status = response.status().as_u16();
    let total = match status {
        206 | 416 => range.and_then(|range| range.total),
        _ => length,
    };
    FileResponse {
        status,
        host,
        etag: text(headers, "etag")
            .filter(|etag| etag.starts_with('"') && etag.len() <= 1024)
            .map(str::to_owned),
        sha256: from_hub,
        total,
        start: range.and_then(|range| range.start),
        encoded: text(headers, "content-encoding").is_some_and(|name| !name.eq_ignore_ascii_case("identity")),
        watch: line,
        body: response.into_body(),
    }
}

/// The checksum that the hub puts beside a file: in a header of its own when the file is elsewhere.
fn hub_checksum(headers: &HeaderMap) -> Option<String> {
    ["x-linked-etag", "etag"].into_iter().find_map(|name| sha256(text(headers, name)?.trim_matches('"')))
}

/// The text as a SHA-256 in lower case, if it is one.
pub(super) fn sha256(text: &str) -> Option<String> {
    let is_one = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| text.to_ascii_lowercase())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// `Content-Range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    /// `None` when no part was sent.
    start: Option<u64>,
    total: Option<u64>,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (part, total) = text.strip_prefix("bytes ")?.split_once('/')?;
        let start = match part.trim() {
            "*" => None,
            part => Some(part.split_once('-')?.0.parse().ok()?),
        };
        let total = match total.trim() {
            "*" => None,
            total => Some(total.parse().ok()?),
        };
        Some(Self { start, total })
    }
}

/// A small answer as a whole.
pub(super) fn get_small(
    net: &DownloadConfig,
    url: &Url,
    limit: u64,
    cancel: &Cancel,
) -> Result<Vec<u8>, PullError> {
    let name = url.path().to_owned();
    let unreachable = |host: String, source: io::Error| {
        if cancel.is_cancelled() {
            return PullError::Cancelled { name: name.clone(), have: 0, total: None };
        }
        PullError::Unreachable { name: name.clone(), host, have: 0, source }
    };
    let mut answer = get(net, url, None, cancel).map_err(|failed| match failed {
        RequestError::Broken(host, error) => unreachable(host, error),
        RequestError::Final(error) => error,
    })?;
    if answer.status != 200 {
        return Err(PullError::Refused { host: answer.host, path: name, status: answer.status });
    }
    let mut body = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        match answer.read(&mut buffer) {
            Ok(0) => return Ok(body),
            Ok(count) => body.extend_from_slice(&buffer[..count]),
            Err(error) => return Err(unreachable(answer.host, error)),
        }
        if body.len() as u64 > limit {
            let fact = format!("an answer of over {limit} bytes");
            return Err(PullError::Answer { host: answer.host, fact });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_checksums() {
        let range = |start, total| Some(Range { start, total });
        for (text, expect) in [
            ("bytes 5-9/10", range(Some(5), Some(10))),
            ("bytes 5-9/*", range(Some(5), None)),
            ("bytes */10", range(None, Some(10))),
            ("bytes 5/10", None),
            ("bytes -5-9/10", None),
            ("pages 5-9/10", None),
            ("bytes 5-9/99999999999999999999", None),
        ] {
            assert_eq!(Range::parse(text), expect, "{text}");
        }
        assert_eq!(sha256(&"aB".repeat(32)), Some("ab".repeat(32)));
        for text in ["", "ab", &"x".repeat(64), &"a".repeat(65), &format!("W/\"{}\"", "a".repeat(60))] {
            assert_eq!(sha256(text), None, "{text}");
        }
    }
}
