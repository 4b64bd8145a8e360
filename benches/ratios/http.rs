//! The parts of HTTP/1.1 that the scripted server needs.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
};

/// A request with its whole body.
pub(crate) struct Request {
    pub method: String,
    pub path: String,
    pub body: Vec<u8>,
    /// The client wants the connection closed after the answer.
    pub close: bool,
}

impl Request {
    /// Reads the next request of a connection. Returns `None` if the client has closed it.
    pub(crate) fn read(from: &mut BufReader<&TcpStream>) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut length, mut chunked, mut close) = (0, false, false);
        loop {
            line.clear();
            if from.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(io::Error::other)?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "connection" => close = value.eq_ignore_ascii_case("close"),
                // curl asks before it sends a large body, and waits up to a second for the answer.
                "expect" => from.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
                _ => {}
            }
        }
        let mut body = Vec::new();
        if chunked {
            read_chunks(from, &mut body)?;
        } else {
            body.resize(length, 0);
            from.read_exact(&mut body)?;
        }
        Ok(Some(Self { method, path, body, close }))
    }
}

fn read_chunks(from: &mut BufReader<&TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
        let start = body.len();
        body.resize(start + size, 0);
        from.read_exact(&mut body[start..])?;
        from.read_line(&mut line)?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// Sends a JSON response.
pub(crate) fn reply(to: &TcpStream, status: u16, json: &str) -> io::Result<()> {
    reply_with(to, status, "application/json", json)
}

/// Sends a response with a body of this content type.
pub(crate) fn reply_with(mut to: &TcpStream, status: u16, kind: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} -\r\nServer: llama.cpp\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    to.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())
}

/// A response with server-sent events. Each event is written on its own.
pub(crate) struct Events<'a> {
    to: &'a TcpStream,
}

impl<'a> Events<'a> {
    pub(crate) fn open(mut to: &'a TcpStream) -> io::Result<Self> {
        to.write_all(
            b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        )?;
        Ok(Self { to })
    }

    pub(crate) fn put(&mut self, data: &str) -> io::Result<()> {
        let event = format!("data: {data}\n\n");
        self.to.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
    }

    pub(crate) fn close(mut self) -> io::Result<()> {
        self.to.write_all(b"0\r\n\r\n")
    }
}
