//! Requests that no client should send: random bytes, wrong framing, and what is meant to be smuggled past a server.

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use serde_json::json;

use super::{TestDaemon, read_until};
use crate::{
    fake_llama::{FakeLlama, Reply},
    hostile_input::{Random, rounds},
};

/// The time that a fuzzed request waits for an answer. One that announces more than it sends gets none.
const PATIENCE: Duration = Duration::from_millis(100);

/// The bytes that a mutation inserts.
#[rustfmt::skip]
const PIECES: [&[u8]; 24] = [
    b"\r\n", b"\r", b"\n", b"\0", b" ", b"\t", b"\xff\xfe", b"Content-Length: 5\r\n",
    b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n", b"Host: evil.example\r\n", b"Origin: null\r\n",
    b"Authorization: Bearer x\r\n", b"Expect: 100-continue\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"ffffffffffffffff\r\n", b"0\r\n\r\n", b"HTTP/9.9",
    b"%00", b"/../", b"[[[[[[[[", b"\"\\ud800\"", b"1e999",
];

/// Returns valid requests of every API.
fn valid_requests(server: &TestDaemon) -> Vec<Vec<u8>> {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let bodies = [
        ("/v1/generate", json!({"input": "hi", "history": [{"role": "user", "parts": [{"text": "a"}]}]})),
        ("/v1/generate", json!({"input": "hi", "stream": true})),
        ("/v1/chat/completions", json!({"messages": messages, "stream": true, "tools": []})),
        (
            "/v1/responses",
            json!({"input": messages, "tools": [], "text": {"format": {"type": "json_object"}}}),
        ),
        ("/api/runs", json!({"prompt": "hi"})),
    ];
    let token = server.bearer();
    let post = |(path, body): &(&str, serde_json::Value)| {
        let body = body.to_string();
        let head =
            server.head("POST", path, &[("Content-Type", "application/json"), ("Authorization", &token)]);
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let mut requests: Vec<Vec<u8>> = bodies.iter().map(post).collect();
    for (method, path) in
        [("GET", "/"), ("GET", "/v1/models"), ("OPTIONS", "/v1/generate"), ("HEAD", "/status")]
    {
        requests.push((server.head(method, path, &[]) + "\r\n").into_bytes());
    }
    requests
}

fn mutate(request: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(request.len() + 1);
    let end = (at + random.below(16)).min(request.len());
    match random.below(5) {
        0 if at < request.len() => request[at] = random.byte(),
        1 => drop(request.drain(at..end)),
        2 => request.truncate(at),
        3 => {
            let copy = request[at..end].to_vec();
            request.splice(at..at, copy);
        }
        _ => {
            request.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied());
        }
    }
}

#[test]
fn fuzzed_requests_break_nothing() {
    let model = FakeLlama::start([]).always(|_| Reply::text("ok"));
    let server = TestDaemon::start(&model);
    let pid = server.home.daemon().unwrap();
    let valid = valid_requests(&server);
    let mut random = Random::new(7);
    let (mut answered, sent) = (0, rounds(400, 10_000));
    for _ in 0..sent {
        let mut request = valid[random.below(valid.len())].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut request, &mut random);
        }
        let mut stream = server.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&request).ok();
        let mut answer = [0; 12];
        if stream.read_exact(&mut answer).is_ok() {
            answered += 1;
            let request = String::from_utf8_lossy(&request);
            assert!(answer.starts_with(b"HTTP/1.") && answer[9] != b'5', "{request:?}: {answer:?}");
        }
    }
    assert!(answered > sent / 4, "{answered} of {sent} were answered");
    server.get("/healthz").expect(200);
    assert_eq!(server.home.daemon(), Some(pid));
    assert!(!server.home.read("daemon.log").contains("panicked"));
}

#[test]
fn ambiguous_framing_is_refused_and_reaches_no_model() {
    let (model, server) = TestDaemon::with_model([]);
    let body = r#"{"input":"hi"}"#;
    let head = server.head("POST", "/v1/generate", &[("Content-Type", "application/json")]);
    let length = body.len();
    for framing in [
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("Content-Length: {length}\r\nContent-Length: 5\r\n\r\n{body}"),
        format!("Content-Length: +{length}\r\n\r\n{body}"),
        format!("Content-Length: -1\r\n\r\n{body}"),
        format!("Content-Length: {length}, 5\r\n\r\n{body}"),
        format!("Content-Length: 18446744073709551616\r\n\r\n{body}"),
        format!("Content-Length : {length}\r\n\r\n{body}"),
        format!("X: a\r\n folded\r\nContent-Length: {length}\r\n\r\n{body}"),
        format!("X: a\0b\r\nContent-Length: {length}\r\n\r\n{body}"),
        format!("Transfer-Encoding: chunked\r\n\r\nx\r\n{body}\r\n0\r\n\r\n"),
        format!("Transfer-Encoding: chunked\r\n\r\n-1\r\n{body}\r\n0\r\n\r\n"),
        format!("Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\n{body}\r\n0\r\n\r\n"),
        format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}XX0\r\n\r\n"),
        format!("Transfer-Encoding: identity\r\n\r\n{body}"),
        format!("X: {}\r\n\r\n", "x".repeat(32 * 1024)),
        format!("{}\r\n", "X: y\r\n".repeat(1000)),
    ] {
        let mut stream = server.connect();
        stream.write_all(format!("{head}{framing}").as_bytes()).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        let status = String::from_utf8_lossy(&answer).chars().skip(9).take(3).collect::<String>();
        let framing: String = framing.chars().take(80).collect();
        assert!(["", "400", "413", "415", "431"].contains(&status.as_str()), "{framing:?}: {status}");
    }
    assert!(model.chats().is_empty());
    server.get("/healthz").expect(200);
}

#[test]
fn a_chunk_of_any_announced_size_costs_only_what_arrives() {
    const MIB: usize = 1024 * 1024;
    let (model, server) = TestDaemon::with_model([]);
    let before = server.home.daemon_memory("VmRSS:");
    let head = server.head("POST", "/v1/generate", &[("Content-Type", "application/json")]);
    let announced = ["FFFFFFFFFFFFFFFF", "7FFFFFFFFFFFFFFF"].map(|size| {
        let mut stream = server.connect();
        write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n{size}\r\n{{\"input\":\"").unwrap();
        server.get("/healthz").expect(200);
        stream
    });
    let taken = server.home.daemon_memory("VmRSS:").saturating_sub(before);
    assert!(taken < 4 * 1024, "{taken} KiB");
    for mut stream in announced {
        // With the beginning above, ten bytes more than a body may have. Nothing is left over that would reset the connection.
        for _ in 0..32 {
            stream.write_all(&vec![b'x'; MIB]).unwrap();
        }
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
    assert!(model.chats().is_empty());
    server.get("/healthz").expect(200);
}

#[test]
fn runs_beyond_the_limit_get_a_time_for_the_next_attempt() {
    let model = FakeLlama::start([]).always(|_| Reply::hang());
    let server = TestDaemon::start(&model);
    let running: Vec<_> = (0..256)
        .map(|_| {
            let mut client = server.open("/v1/generate", &json!({"input": "x", "stream": true}));
            read_until(&mut client, "\r\n\r\n");
            client
        })
        .collect();
    let chat = json!({"model": "default", "messages": [{"role": "user", "content": "x"}]});
    for (path, body) in [("/v1/generate", &json!({"input": "x"})), ("/v1/chat/completions", &chat)] {
        assert_eq!(server.post(path, body).expect(503).headers["retry-after"], "1", "{path}");
    }
    let body = json!({"prompt": "x"}).to_string();
    let headers = [("Content-Type", "application/json"), ("Authorization", &*server.bearer())];
    let refused = server.send("/api/runs", &headers, body.as_bytes());
    assert_eq!(refused.expect(503).headers["retry-after"], "1");
    drop(running);
}
