//! llama.cpp's own server, with the arguments that kontekst uses for a managed one.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{Failure, fixture::Llama};

/// The batch size in tokens. A cancel takes effect between two batches.
pub(crate) const BATCH: u32 = 256;

/// The time that the server may take to answer. Loading a model of a few hundred megabytes takes a second.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server without a key. It is stopped when this is dropped.
pub(crate) struct LlamaServer {
    pub address: SocketAddr,
    child: Child,
}

impl LlamaServer {
    /// Starts a server with a context window of `window` tokens and waits until it is ready.
    pub(crate) fn start(llama: &Llama, window: u32) -> Result<Self, Failure> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let (port, batch) = (address.port().to_string(), BATCH.to_string());
        let child = Command::new(&llama.server)
            .args(["--host", "127.0.0.1", "--port", &port, "--alias", "bench", "--jinja", "-np", "1"])
            .args(["--ctx-size", &window.to_string(), "-b", &batch, "-ub", &batch, "-m"])
            .arg(&llama.model)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut llama_server = Self { address, child };
        let deadline = Instant::now() + TIMEOUT;
        while llama_server.ask("/props").is_err() {
            if let Some(status) = llama_server.child.try_wait()? {
                return Err(format!("llama-server ended with {status}").into());
            }
            if Instant::now() > deadline {
                return Err("llama-server does not get ready".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(llama_server)
    }

    /// Returns the JSON answer to a GET request.
    pub(crate) fn ask(&self, path: &str) -> Result<Value, Failure> {
        self.request("GET", path, "")
    }

    /// Returns the number of tokens in a text.
    pub(crate) fn count(&self, text: &str) -> Result<usize, Failure> {
        let answer = self.request("POST", "/tokenize", &json!({ "content": text }).to_string())?;
        Ok(answer["tokens"].as_array().ok_or("no tokens")?.len())
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Result<Value, Failure> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let (host, length) = (self.address, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        if !head.starts_with("HTTP/1.1 200") {
            return Err(format!("{path}: {}", head.lines().next().unwrap_or_default()).into());
        }
        Ok(serde_json::from_str(body)?)
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
