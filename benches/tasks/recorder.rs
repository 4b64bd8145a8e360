//! A proxy in front of the model server that records every exchange, for all harnesses alike.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use url::Url;

use crate::{Failure, harness::Usage};

/// The largest request that is passed on, in bytes.
const MAX_REQUEST: usize = 64 << 20;

/// A request to the model for an answer, and what came back.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) request: String,
    pub(crate) response: String,
}

/// The time that the end of an exchange takes after its client is gone.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// The recorded exchanges, and the number of connections that are open.
#[derive(Default)]
struct Recorded {
    exchanges: Vec<Exchange>,
    open: usize,
}

/// Passes requests on to a server until the program ends. Each connection carries one request.
pub(crate) struct Recorder {
    /// The address of the proxy, with the path of the server's.
    pub(crate) endpoint: String,
    recorded: Arc<(Mutex<Recorded>, Condvar)>,
}

impl Recorder {
    /// Starts a proxy before a server that speaks plain HTTP.
    pub(crate) fn before(endpoint: &str) -> Result<Self, Failure> {
        let mut url = Url::parse(endpoint)?;
        let (Some(host), Some(port), "http") = (url.host_str(), url.port_or_known_default(), url.scheme())
        else {
            return Err(format!("{endpoint} is not an http address").into());
        };
        let server = format!("{host}:{port}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        url.set_host(Some("127.0.0.1"))?;
        url.set_port(Some(listener.local_addr()?.port())).map_err(|()| "the address takes no port")?;
        let recorded = Arc::new((Mutex::default(), Condvar::new()));
        let all = Arc::clone(&recorded);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, all) = (server.clone(), Arc::clone(&all));
                lock(&all.0).open += 1;
                thread::spawn(move || {
                    // A client that goes away ends its exchange, and the server notices that.
                    let exchange = pass_on(&client, &server).ok().flatten();
                    let mut recorded = lock(&all.0);
                    recorded.exchanges.extend(exchange);
                    recorded.open -= 1;
                    all.1.notify_all();
                });
            }
        });
        Ok(Self { endpoint: url.as_str().trim_end_matches('/').to_owned(), recorded })
    }

    /// Returns the exchanges since the last call. Waits for those whose clients have just gone away.
    pub(crate) fn take(&self) -> Vec<Exchange> {
        let (recorded, changed) = &*self.recorded;
        let waited = changed.wait_timeout_while(lock(recorded), CLOSING_TIME, |recorded| recorded.open > 0);
        let (mut recorded, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut recorded.exchanges)
    }
}

fn lock(recorded: &Mutex<Recorded>) -> MutexGuard<'_, Recorded> {
    recorded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes one request on, and returns the exchange if it asked the model for something.
fn pass_on(client: &TcpStream, server: &str) -> io::Result<Option<Exchange>> {
    let mut reader = BufReader::new(client);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if line == "\r\n" {
            break;
        }
        // One exchange for each connection, so that the end of a response is the end of the connection.
        if !lower.starts_with("connection:") && !lower.starts_with("keep-alive:") {
            head.push_str(&line);
        }
    }
    if length > MAX_REQUEST {
        return Err(io::Error::other("the request is too large"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    upstream.write_all(&body)?;
    let mut response = Vec::new();
    // What has arrived is kept also when the client does not want the rest.
    copy(&mut upstream, &mut &*client, &mut response).ok();
    let asks =
        head.lines().next().is_some_and(|line| line.starts_with("POST ") && line.contains("/completions"));
    Ok(asks.then(|| Exchange {
        request: String::from_utf8_lossy(&body).into_owned(),
        response: String::from_utf8_lossy(&response).into_owned(),
    }))
}

/// Copies a response block by block, as it comes, and keeps it.
fn copy(from: &mut impl Read, to: &mut impl Write, kept: &mut Vec<u8>) -> io::Result<()> {
    let mut block = [0; 16 * 1024];
    loop {
        let read = from.read(&mut block)?;
        if read == 0 {
            return Ok(());
        }
        kept.extend_from_slice(&block[..read]);
        to.write_all(&block[..read])?;
    }
}

/// Adds up what the model was asked for.
pub(crate) fn usage(exchanges: &[Exchange]) -> Usage {
    let mut usage = Usage::default();
    for Exchange { response, .. } in exchanges {
        let count = |name: &str| last_number(response, name);
        // llama-server's own counts, and those of OpenAI's API.
        let cached = count("cache_n").or(count("cached_tokens")).unwrap_or(0);
        usage.calls += 1;
        usage.cached_tokens += cached;
        usage.prompt_tokens +=
            count("prompt_n").map_or_else(|| count("prompt_tokens").unwrap_or(0), |new| new + cached);
        usage.completion_tokens += count("predicted_n").or(count("completion_tokens")).unwrap_or(0);
    }
    usage
}

/// Returns the last number with this name in a stream of JSON.
fn last_number(text: &str, name: &str) -> Option<u64> {
    let after = &text[text.rfind(&format!("\"{name}\":"))? + name.len() + 3..];
    let digits: String = after.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
