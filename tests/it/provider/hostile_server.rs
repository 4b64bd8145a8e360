//! Broken and hostile (byzantine) servers: every answer ends with the right error, and within bounds. The events that a stream
//! may have, and their counts, are tables beside `stream` and `turn_builder`.

use std::{io::Write as _, time::Duration};

use kontekst_provider::{ProviderError, Turn};
use serde_json::{Value, json};

use super::{TIMING, Timing, ask, connect, prompt};
use crate::fake_llama::{FakeLlama, Reply};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

/// Returns a stream with one `data:` line for each of `events` and no ending.
fn events<T: AsRef<[u8]>>(events: impl IntoIterator<Item = T>) -> Reply {
    let mut body = Vec::new();
    for event in events {
        body.extend_from_slice(b"data: ");
        body.extend_from_slice(event.as_ref());
        body.extend_from_slice(b"\n\n");
    }
    Reply::body("text/event-stream", body)
}

fn delta(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
}

fn stop() -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string()
}

fn raw(body: &str) -> Reply {
    Reply::raw(format!("{HEAD}\r\n{body}"))
}

/// Describes the result of one answer: the error, or `ok` with what was understood.
fn outcome(result: Result<Turn, ProviderError>) -> String {
    match result {
        Ok(turn) => {
            format!("ok: {:?}, {} calls, {:?}", turn.content, turn.calls.len(), turn.usage.map(|u| u.prompt))
        }
        Err(ProviderError::Unreachable { started, source, .. }) => {
            format!("unreachable({started}): {source}")
        }
        Err(error) => error.to_string(),
    }
}

/// Asks a server that sends `reply` and then nothing that counts as an answer. The request must time out.
#[track_caller]
fn assert_times_out(name: &str, reply: Reply, expected: &str) {
    let fake = FakeLlama::start([reply]);
    let (first, probe) = (Duration::from_millis(500), Duration::from_secs(1));
    let timing = Timing { first_token: first, between_tokens: first, probe, ..TIMING };
    let outcome = outcome(ask(&connect(&fake.url(), timing), &prompt("hi")).0);
    assert_eq!(outcome, format!("{expected}: it has been silent for too long"), "{name}");
    fake.wait_for_disconnect();
}

/// The most that may be read of an answer, 64 MiB, and what may lie unread in the kernel's buffers.
const MAX_SENT: u64 = 80 * 1024 * 1024;

/// Asks a server that gives `reply`. The outcome must begin with `expected`, and the server must not have been
/// able to send more than [`MAX_SENT`].
#[track_caller]
fn assert_outcome(name: &str, reply: Reply, expected: &str) {
    let fake = FakeLlama::start([reply]);
    let provider = connect(&fake.url(), TIMING);
    let outcome = outcome(ask(&provider, &prompt("hi")).0);
    assert!(outcome.starts_with(expected), "{name}: {outcome:?}");
    assert!(fake.bytes_sent() < MAX_SENT, "{name}: {} bytes", fake.bytes_sent());
}

const BROKEN: &str = "the model server sent a broken answer: ";
const UNFINISHED: &str = "the model server sent a broken answer: it ended before it was finished";

/// Runs in a process of its own, because its peak memory is measured and other tests load models.
#[test]
fn floods() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "provider::hostile_server::flood_process"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "the body of a process that other tests start"]
fn flood_process() {
    let filler = "x".repeat(1024 * 1024);
    let broken = |what: &str| format!("{BROKEN}{what}");
    assert_outcome(
        "a line of 1 GiB",
        raw("data: ").then_repeat(filler.clone(), 1024),
        &broken("a line of the answer is over"),
    );
    assert_outcome(
        "a head of 64 MiB",
        Reply::raw("HTTP/1.1 200 OK\r\nx: ").then_repeat(filler.clone(), 64),
        &broken("response header is too big"),
    );
    let many = (0..5000).map(|n| format!("x-{n}: y\r\n")).collect::<String>();
    assert_outcome("5000 headers", Reply::raw(format!("{HEAD}{many}\r\n")), BROKEN);
    let text = format!("data: {}\n\n", delta(&json!({"content": "x".repeat(500_000)})));
    assert_outcome("64 MiB of text", raw("").then_repeat(text, 200), &broken("the answer is over"));
    let comments = format!(": {}\n\n", "x".repeat(10_000));
    assert_outcome(
        "comments without end",
        raw("").then_repeat(comments, 20_000),
        &broken("the answer is over"),
    );
    let event = json!({"prompt_progress": {"processed": 1, "total": 2}, "filler": "x".repeat(10_000)});
    let progress = format!("data: {event}\n\n");
    assert_outcome(
        "progress without end",
        raw("").then_repeat(progress, 20_000),
        &broken("the answer is over"),
    );
    let call = |n: usize| {
        delta(
            &json!({"tool_calls": [{"index": n, "id": format!("c{n}"), "function": {"name": "f", "arguments": "{}"}}]}),
        )
    };
    assert_outcome("100 000 calls", events((0..100_000).map(call)), &broken("more than 64 tool calls"));
    let at_once: Vec<_> = (0..10_000).map(|n| json!({"index": n, "function": {"name": "f"}})).collect();
    assert_outcome(
        "10 000 calls in one event",
        events([delta(&json!({"tool_calls": at_once}))]),
        &broken("more than 64 tool calls"),
    );
    let arguments = delta(
        &json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "x".repeat(100_000)}}]}),
    );
    assert_outcome(
        "arguments of 2 MB",
        events(vec![arguments; 20]),
        &broken("the arguments of a tool call are over"),
    );
    assert_outcome(
        "an error text of 64 MiB",
        Reply::raw("HTTP/1.1 500 No\r\n\r\n").then_repeat(filler, 64),
        &broken("the answer is over"),
    );
    assert!(peak_memory() < 400 * 1024 * 1024, "{} MiB", peak_memory() >> 20);
}

/// Returns the peak memory of this process in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn garbage() {
    let deep = |open: &str| format!("{{\"choices\":{}", open.repeat(100_000));
    assert_outcome("a depth bomb of lists", events([deep("[")]), &format!("{BROKEN}an event is not"));
    assert_outcome("a depth bomb of objects", events([deep("{\"a\":")]), &format!("{BROKEN}an event is not"));
    assert_outcome(
        "a depth bomb that is ignored",
        events([format!("{{\"x\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000)), stop()]),
        "ok",
    );
    assert_outcome(
        "bytes that are not UTF-8",
        events([&b"{\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}"[..]]),
        UNFINISHED,
    );
    assert_outcome("content that is a number", events([r#"{"choices":[{"delta":{"content":7}}]}"#]), BROKEN);
    assert_outcome(
        "arguments that are a number",
        events([delta(&json!({"tool_calls": [{"function": {"name": "f", "arguments": 7}}]})), stop()]),
        "ok: \"\", 1 calls",
    );
    assert_outcome("random bytes", Reply::raw(vec![0x8f; 10_000]), BROKEN);
    assert_outcome("a TLS alert", Reply::raw([21, 3, 3, 0, 2, 2, 40]), BROKEN);
    assert_outcome(
        "chunks of nonsense",
        Reply::raw(format!("{HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n")),
        BROKEN,
    );
    assert_outcome(
        "a chunk of 2^64",
        Reply::raw(format!("{HEAD}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nx")),
        "",
    );
    assert_outcome(
        "a chunk size of 1 MiB",
        Reply::raw(format!("{HEAD}transfer-encoding: chunked\r\n\r\n")).then_repeat("0".repeat(1024), 1024),
        BROKEN,
    );
}

#[test]
fn other_answers_than_asked_for() {
    assert_outcome(
        "a web page",
        Reply::body("text/html; charset=utf-8", "<html>login</html>"),
        &format!("{BROKEN}it is `text/html`"),
    );
    assert_outcome(
        "a redirect",
        Reply::raw("HTTP/1.1 307 Over there\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"),
        "the model server answered 307: a redirect, which is not followed",
    );
    assert_outcome(
        "a redirect to itself",
        Reply::raw("HTTP/1.1 302 Again\r\nlocation: /v1/chat/completions\r\ncontent-length: 0\r\n\r\n"),
        "the model server answered 302",
    );
    assert_outcome(
        "a bare answer in JSON",
        Reply::json(200, &json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]})),
        "ok: \"x\"",
    );
    assert_outcome(
        "an error with status 200",
        Reply::json(200, &json!({"error": "no"})),
        "the model server answered 500: no",
    );
    assert_outcome("an empty answer", Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), UNFINISHED);
    assert_outcome("no content", Reply::raw("HTTP/1.1 204 None\r\n\r\n"), "the model server answered 204");
    assert_outcome(
        "an upgrade",
        Reply::raw("HTTP/1.1 101 Go on\r\nupgrade: x\r\n\r\n"),
        "the model server answered 101",
    );
    assert_outcome("a gzip bomb", Reply::raw(gzip_bomb()), BROKEN);
    assert_outcome(
        "an error of null",
        events([r#"{"error":null,"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#]),
        "ok: \"x\"",
    );
    assert_outcome(
        "an error of a number",
        events([r#"{"error":7}"#]),
        "the model server answered 500: an error without a message",
    );
}

/// Returns an answer that claims to be compressed.
fn gzip_bomb() -> Vec<u8> {
    let mut answer = format!("{HEAD}content-encoding: gzip\r\n\r\n").into_bytes();
    answer.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]).unwrap();
    answer.extend(vec![0; 100_000]);
    answer
}

#[test]
fn endings() {
    let text = || delta(&json!({"content": "x"}));
    assert_outcome("no ending", events([text()]), UNFINISHED);
    assert_outcome(
        "a cut in a chunk",
        Reply::raw(format!("{HEAD}transfer-encoding: chunked\r\n\r\nfff\r\ndata: {}\n\n", text())),
        "unreachable(true)",
    );
    assert_outcome("a cut in the head", Reply::raw("HTTP/1.1 200 OK\r\ncontent-"), "unreachable(false)");
    assert_outcome("a cut before anything", Reply::raw(""), "unreachable(false)");
    assert_outcome("a torn event", raw(&format!("data: {}\n\ndata: {{\"choi", text())), UNFINISHED);
    assert_outcome("nothing", events::<&str>([]), UNFINISHED);
    assert_outcome("[DONE] alone", events(["[DONE]"]), "ok: \"\"");
    assert_outcome("[DONE] without a reason", events([text(), "[DONE]".to_owned()]), "ok: \"x\"");
    assert_outcome("a reason without [DONE]", events([text(), stop()]), "ok: \"x\"");
    assert_outcome(
        "a reason and then silence",
        Reply::deltas([json!({"content": "x"})])
            .unfinished()
            .then_event(serde_json::from_str(&stop()).unwrap())
            .then_hang(),
        "ok: \"x\"",
    );
    assert_outcome(
        "a half close",
        Reply::deltas([json!({"content": "x"})]).unfinished().then_half_close(),
        "unreachable(true)",
    );
    assert_outcome(
        "the server gave up",
        events([json!({"choices": [{"delta": {}, "finish_reason": "abort"}]}).to_string()]),
        BROKEN,
    );
}

#[test]
fn silences() {
    let drip = |what: &str| what.repeat(4000);
    assert_times_out("silence", Reply::hang(), "unreachable(false)");
    assert_times_out("silence after a text", Reply::text("x").then_hang(), "unreachable(true)");
    assert_times_out("comments", raw(&drip(": ping\n\n")).then_hang(), "unreachable(false)");
    assert_times_out("blank lines", raw(&drip("\n")).then_hang(), "unreachable(false)");
    let empty = drip(&format!("data: {}\n\n", delta(&json!({"content": ""}))));
    assert_times_out("empty events", raw(&empty).then_hang(), "unreachable(false)");
    let unchanged = drip(&format!("data: {}\n\n", json!({"prompt_progress": {"processed": 0, "total": 2}})));
    assert_times_out("progress that makes none", raw(&unchanged).then_hang(), "unreachable(false)");
    assert_times_out(
        "half a JSON answer",
        Reply::raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{").then_hang(),
        "unreachable(false)",
    );
    assert_times_out(
        "half an error",
        Reply::raw("HTTP/1.1 500 No\r\n\r\nbecause").then_hang(),
        "unreachable(false)",
    );
}

#[test]
fn odd_but_understood() {
    let usage = |usage: Value| {
        events([
            delta(&json!({"content": "x"})),
            stop(),
            json!({"choices": [], "usage": usage}).to_string(),
            "[DONE]".to_owned(),
        ])
    };
    assert_outcome(
        "usage beyond numbers",
        usage(json!({"prompt_tokens": 1e300, "completion_tokens": 1})),
        "ok: \"x\", 0 calls, None",
    );
    assert_outcome(
        "usage in text",
        usage(json!({"prompt_tokens": "7", "completion_tokens": [1]})),
        "ok: \"x\", 0 calls, None",
    );
    assert_outcome(
        "another choice",
        events([
            r#"{"choices":[{"index":1,"delta":{"content":"y"}},{"index":0,"delta":{"content":"x"}}]}"#
                .to_owned(),
            stop(),
        ]),
        "ok: \"x\"",
    );
    assert_outcome(
        "a negative index",
        events([
            delta(
                &json!({"tool_calls": [{"index": -1, "id": "a", "function": {"name": "f"}}, {"index": -1, "id": "b", "function": {"name": "g"}}]}),
            ),
            stop(),
        ]),
        "ok: \"\", 2 calls",
    );
    assert_outcome(
        "calls without a name",
        events([
            delta(
                &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}, {"index": 1}, {}]}),
            ),
            stop(),
        ]),
        "ok: \"\", 0 calls",
    );
    assert_outcome(
        "no delta",
        events([r#"{"choices":[{}]}"#.to_owned(), r#"{"choices":null}"#.to_owned(), "{}".to_owned(), stop()]),
        "ok",
    );
    assert_outcome(
        "control characters in a text",
        events([delta(&json!({"content": "\u{1b}[2J\u{0}"})), stop()]),
        "ok: \"\\u{1b}[2J\\0\"",
    );
}
