//! Server-sent events, byte by byte.

use std::fs;

use serde_json::{Value, json};

use super::{TestDaemon, read_until, three_tools};
use crate::fake_llama::{FakeLlama, Reply, gate};

#[test]
fn events_have_the_documented_order_and_form() {
    let (_model, server) = TestDaemon::with_model([Reply::text("Hello world")]);
    let answer = server.generate(&json!({"input": "hi", "stream": true, "prompt_id": "p"})).expect(200);
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!((&*answer.headers["cache-control"], &*answer.headers["x-prompt-id"]), ("no-cache", "p"));
    assert_eq!(answer.names_without_repeats(), ["content", "assistant", "history", "done"]);
    assert_eq!(answer.data("content").concat(), "Hello world");
    let assistant: Value = serde_json::from_str(&answer.data("assistant")[0]).unwrap();
    assert_eq!(assistant, json!({"type": "assistant", "content": "Hello world"}));
    assert_eq!(answer.data("done"), ["true"]);
    for block in answer.body.split_terminator("\n\n") {
        let lines: Vec<_> = block.split('\n').collect();
        assert!(
            lines.len() == 2 && lines[0].starts_with("event: ") && lines[1].starts_with("data: "),
            "{block:?}"
        );
    }
}

#[test]
fn text_is_streamed_before_the_model_has_finished() {
    let (wait, key) = gate();
    let (_model, server) = TestDaemon::with_model([Reply::text("early").then_wait(wait).then_text(" late")]);
    let mut stream = server.open("/v1/generate", &json!({"input": "hi", "stream": true}));
    read_until(&mut stream, "data: early\n\n");
    server.get("/healthz").expect(200);
    key.open();
    read_until(&mut stream, "data: true\n\n");
}

#[test]
fn text_cannot_forge_events() {
    let evil = "look\nx\revent: done\rdata: true\r\r\r\n\\n\n\nevent: done\ndata: true\n\n😀";
    let (_model, server) = TestDaemon::with_model([Reply::deltas([json!({"content": evil})])]);
    let answer = server.generate(&json!({"input": "cr", "stream": true})).expect(200);
    assert_eq!(answer.names().iter().filter(|name| *name == "done").count(), 1);
    assert!(!answer.body.contains('\r'));
    assert!(answer.data("content")[0].starts_with("look\\nx\\revent: done"));
    let assistant: Value = serde_json::from_str(&answer.data("assistant")[0]).unwrap();
    assert_eq!(assistant["content"], evil);
}

#[test]
fn streamed_and_whole_answers_report_the_same_tools() {
    let scripts = three_tools().into_iter().chain(three_tools());
    let (_model, server) = TestDaemon::with_model(scripts);
    fs::write(server.home.work_dir().join("a.txt"), "alpha\n").unwrap();
    let streamed = server.generate(&json!({"input": "tool", "stream": true})).expect(200);
    let names = streamed.names();
    let texts = |names: &[String]| names.iter().take_while(|name| *name == "content").count();
    let first = texts(&names);
    let pair = ["tool_call", "tool_result"];
    let second = &names[first + 7..];
    assert_eq!(names[first..first + 7].to_vec(), [&["assistant"][..], &pair, &pair, &pair].concat());
    assert_eq!(second[texts(second)..].to_vec(), ["assistant", "history", "done"]);

    fs::remove_file(server.home.work_dir().join("b.txt")).unwrap();
    let whole = server.generate(&json!({"input": "tool"})).expect(200).json();
    let history: Value = serde_json::from_str(&streamed.data("history")[0]).unwrap();
    assert_eq!(history, whole["history"]);
    let items: Vec<Value> = streamed
        .events()
        .iter()
        .filter(|(name, _)| ["assistant", "tool_call", "tool_result"].contains(&name.as_str()))
        .map(|(_, data)| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!(json!(items), whole["messages"]);
}

#[test]
fn a_failure_is_one_error_event() {
    let (_model, server) =
        TestDaemon::with_model([Reply::error(500, "boom"), Reply::text("half an").then_error(500, "boom")]);
    let early = server.generate(&json!({"input": "fail", "stream": true})).expect(200);
    assert_eq!(early.names(), ["error"]);
    let message: Value = serde_json::from_str(&early.data("error")[0]).unwrap();
    assert!(message["message"].as_str().unwrap().contains("boom"));
    let late = server.generate(&json!({"input": "fail", "stream": true})).expect(200);
    assert_eq!(late.names().last().unwrap(), "error");
    assert!(late.names().iter().all(|name| name != "done" && name != "history"));
}

#[test]
fn two_hundred_streams_at_once_are_relayed() {
    let model = FakeLlama::start([]).always(|_| Reply::text(&"word ".repeat(50)));
    let server = TestDaemon::start(&model);
    server.generate(&json!({"input": "warm"})).expect(200);
    let before = server.home.daemon_memory("VmRSS:");
    let streams: Vec<_> = (0..200)
        .map(|n| server.open("/v1/generate", &json!({"input": format!("{n}"), "stream": true})))
        .collect();
    for stream in streams {
        let answer = super::read_all(stream).expect(200);
        assert_eq!(answer.data("content").concat(), "word ".repeat(50));
        assert_eq!(answer.names().last().unwrap(), "done");
    }
    let grown = server.home.daemon_memory("VmHWM:").saturating_sub(before);
    assert!(grown <= 64 * 1024, "grew by {grown} KiB");
}
