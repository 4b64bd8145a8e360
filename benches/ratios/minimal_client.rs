//! The minimal client: one blocking socket and hand-written HTTP.

use std::{
    borrow::Cow,
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    process::Command,
};

use serde::Deserialize;
use serde_json::json;

use crate::{Failure, home::BenchHome};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

/// Returns the command that runs this program as the minimal client.
pub(crate) fn command(home: &BenchHome, address: &str, body: &str) -> Result<Command, Failure> {
    let mut command = home.command(std::env::current_exe()?);
    command.args(["--minimal-client", address, body]);
    Ok(command)
}

/// Sends `body` to `address` and prints the answer as it comes.
pub(crate) fn ask(address: &str, body: &str) -> Result<(), Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())?;

    let (mut reader, mut stdout) = (BufReader::with_capacity(64 * 1024, stream), io::stdout());
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Err("the answer stops in the middle".into());
        }
        let Some(data) = line.strip_prefix(b"data: ") else { continue };
        if data.starts_with(b"[DONE]") {
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_slice(data)?;
        if let Some(text) = chunk.choices.first().and_then(|choice| choice.delta.content.as_deref()) {
            stdout.write_all(text.as_bytes())?;
            stdout.flush()?;
        }
    }
}

/// Returns the smallest streaming chat request. curl sends the same.
pub(crate) fn body(model: &str, prompt: &str) -> String {
    json!({ "model": model, "stream": true, "messages": [{ "role": "user", "content": prompt }] }).to_string()
}
