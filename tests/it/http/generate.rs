//! `POST /v1/generate` without a stream.

use std::fs;

use serde_json::{Value, json};

use super::{TestDaemon, three_tools};
use crate::{
    fake_llama::{FakeLlama, Reply},
    wait::wait_until,
};

#[test]
fn an_answer_has_all_documented_members() {
    let (_model, server) =
        TestDaemon::with_model([Reply::text("Hello world"), Reply::text("a"), Reply::text("b")]);
    let answer = server.generate(&json!({"input": "hi", "prompt_id": "p1"})).expect(200);
    assert_eq!(answer.headers["x-prompt-id"], "p1");
    let want = json!({
        "output": "Hello world", "prompt_id": "p1",
        "messages": [{"type": "assistant", "content": "Hello world"}],
        "history": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "Hello world"}]}],
    });
    assert_eq!(answer.json(), want);
    let id =
        |body: Value| server.generate(&body).expect(200).json()["prompt_id"].as_str().unwrap().to_owned();
    let (first, second) = (id(json!({"input": "x"})), id(json!({"input": "x", "prompt_id": ""})));
    assert!(!first.is_empty() && first != second);
    // No session is stored.
    assert_eq!(server.home.run(&["sessions", "--json"]).success().matches("\"id\"").count(), 0);
}

#[test]
fn tools_run_and_are_reported_in_order() {
    let (_model, server) = TestDaemon::with_model(three_tools());
    fs::write(server.home.work_dir().join("a.txt"), "alpha\n").unwrap();
    let answer = server.generate(&json!({"input": "tool"})).expect(200).json();
    assert_eq!(answer["output"], "let me look\nafter tool");
    let messages = answer["messages"].as_array().unwrap();
    let kinds: Vec<_> = messages.iter().map(|item| item["type"].as_str().unwrap()).collect();
    let pair = ["tool_call", "tool_result"];
    assert_eq!(kinds, [&["assistant"][..], &pair, &pair, &pair, &["assistant"]].concat());
    assert_eq!(
        messages[1],
        json!({"type": "tool_call", "name": "read_file", "arguments": {"path": "a.txt"}})
    );
    assert_eq!((&messages[2]["ok"], &messages[2]["name"]), (&json!(true), &json!("read_file")));
    assert!(
        messages[2]["responseText"].as_str().unwrap().contains("alpha") && messages[2].get("error").is_none()
    );
    assert_eq!(messages[4]["ok"], false);
    assert!(
        messages[4]["error"].as_str().unwrap().contains("missing.txt")
            && messages[4].get("responseText").is_none()
    );
    assert_eq!(server.file("b.txt").as_deref(), Some("new\n"));

    let history = answer["history"].as_array().unwrap();
    assert_eq!(history.len(), 4);
    let (calls, results) = (history[1]["parts"].as_array().unwrap(), history[2]["parts"].as_array().unwrap());
    assert_eq!((calls.len(), results.len(), &history[2]["role"]), (4, 3, &json!("user")));
    for (call, result) in calls[1..].iter().zip(results) {
        assert_eq!(call["functionCall"]["id"], result["functionResponse"]["id"]);
        assert_eq!(call["functionCall"]["name"], result["functionResponse"]["name"]);
    }
    assert!(results[1]["functionResponse"]["response"]["error"].is_string());
}

#[test]
fn arguments_keep_the_order_of_the_model_and_cannot_end_an_event() {
    let text = "{\r\n\"path\": \"b.txt\",\n\n\"content\": \"1\\r\\n\"}";
    let call = || Reply::calls([("write_file", json!(text))]);
    let (_model, server) = TestDaemon::with_model([call(), Reply::text("a"), call(), Reply::text("b")]);
    for stream in [false, true] {
        let answer = server.generate(&json!({"input": "write", "stream": stream})).expect(200);
        for expect in [
            r#""arguments":{"path":"b.txt","content":"1\r\n"}"#,
            r#""args":{"path":"b.txt","content":"1\r\n"}"#,
        ] {
            assert!(answer.body.contains(expect), "{}", answer.body);
        }
    }
}

/// A table beside `parse` has all that may be wrong with a request.
#[test]
fn bad_requests_are_400_and_change_nothing() {
    let (model, server) = TestDaemon::with_model([]);
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, error) in [
        (&b"{}"[..], "Missing required field: input"),
        (b"{bad", "Invalid JSON body:"),
        (br#"{"input":"x","prompt_id":"a\r\nX-Evil: 1"}"#, "Invalid field: prompt_id"),
        (br#"{"input":"x","history":[{"role":"system","parts":[]}]}"#, "Invalid field: history"),
        (deep.as_bytes(), ""),
    ] {
        let answer = server.send("/v1/generate", &[("Content-Type", "application/json")], body).expect(400);
        assert!(answer.error().starts_with(error), "{error}: {answer:?}");
    }
    assert!(model.chats().is_empty());
}

#[test]
fn a_client_cannot_choose_models_files_or_servers() {
    let model = FakeLlama::start([Reply::text("ok")]);
    let evil = FakeLlama::start([]);
    let server = TestDaemon::start(&model);
    let secret = server.home.work_dir().join("secret.txt");
    fs::write(&secret, "TOP SECRET").unwrap();
    let body = json!({
        "input": format!("@{} @../x", secret.display()), "model": "x", "api_key": "k", "base_url": evil.url(),
        "working_directory": server.home.work_dir().join("made"),
        "history": [{"role": "user", "parts": [{"fileData": {"mimeType": "text/plain", "fileUri": evil.url()}}]}],
    });
    server.generate(&body).expect(200);
    assert!(evil.chats().is_empty() && !server.home.work_dir().join("made").exists());
    let asked = model.chats()[0].to_string();
    assert!(!asked.contains("TOP SECRET") && asked.contains("not shown to the model"), "{asked}");
}

#[test]
fn failures_are_500_and_reveal_no_secrets() {
    let model = FakeLlama::start([Reply::error(500, "boom")]).always({
        let mut turn = 0;
        move |_| {
            turn += 1;
            Reply::calls([("list_files", json!({"pattern": format!("*.{turn}")}))])
        }
    });
    let server = TestDaemon::start(&model);
    let error = server.generate(&json!({"input": "fail"})).expect(500).error();
    assert!(error.contains("boom") && !error.contains(&server.token), "{error}");
    let error = server.generate(&json!({"input": "for ever"})).expect(500).error();
    assert!(error.contains("50 turns"), "{error}");
}

#[test]
fn automatic_approval_covers_one_run_and_no_file_that_runs_code() {
    let script = || {
        [
            Reply::calls([
                ("write_file", json!({"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"})),
                ("write_file", json!({"path": "../out.txt", "content": "x"})),
                ("list_files", json!({"pattern": "*"})),
                ("write_file", json!({"path": "plain.txt", "content": "x\n"})),
            ]),
            Reply::text("done"),
        ]
    };
    let oks = |server: &TestDaemon| {
        let answer = server.generate(&json!({"input": "go"})).expect(200).json();
        let results: Vec<Value> = answer["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|i| i["type"] == "tool_result")
            .cloned()
            .collect();
        results.iter().map(|item| item["ok"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    let model = FakeLlama::start(script()).always(|request| {
        let asked = request.body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        match asked.as_str() {
            Some("write") => Reply::calls([("write_file", json!({"path": "asked.txt", "content": "x"}))]),
            Some(number) if number.parse::<u32>().is_ok_and(|number| number % 2 == 0) => {
                Reply::error(500, "boom")
            }
            _ => Reply::text("ok"),
        }
    });
    let server = TestDaemon::start(&model);
    assert_eq!(oks(&server), [false, false, true, true]);
    assert!(server.file(".git/hooks/pre-commit").is_none() && server.file("plain.txt").is_some());
    // The automatic approval of these runs ends with them: a run of another door still asks.
    std::thread::scope(|scope| {
        for n in 0..20 {
            let server = &server;
            scope.spawn(move || server.generate(&json!({"input": format!("{n}")})));
        }
    });
    server.home.run(&["run", "write"]).fails(3);
    assert!(server.file("asked.txt").is_none());

    let model = FakeLlama::start(script());
    let server = TestDaemon::with(&model.url(), "approval = \"read-only\"\n");
    assert_eq!(oks(&server), [false, false, true, false]);
    assert!(server.file("plain.txt").is_none());
}

#[test]
fn with_approval_ask_a_person_decides() {
    let model = FakeLlama::start([
        Reply::calls([
            ("write_file", json!({"path": "a.txt", "content": "a\n"})),
            ("write_file", json!({"path": "b.txt", "content": "b\n"})),
        ]),
        Reply::text("done"),
    ]);
    let server = TestDaemon::with(&model.url(), "approval = \"ask\"\n");
    let mut stream = server.open("/v1/generate", &json!({"input": "go", "stream": true}));
    let mut waiting = Vec::new();
    wait_until("the calls wait for a decision", || {
        let listed = server.home.json(&["approvals", "--json"]);
        waiting = listed["approvals"].as_array().unwrap().clone();
        !waiting.is_empty()
    });
    assert_eq!(waiting.len(), 2);
    let shown = server.home.run(&["approvals"]).success();
    assert!(shown.contains("+a") && shown.contains("b.txt"), "{shown}");
    let call = |at: usize| waiting[at]["call"].as_str().unwrap();
    server.home.run(&["approvals", "approve", call(0)]).success();
    server.home.run(&["approvals", "approve", call(0)]).fails(2);
    server.home.run(&["approvals", "deny", call(1), "--reason", "not that one"]).success();
    let rest = super::read_until(&mut stream, "data: true\n\n");
    let text = String::from_utf8(rest).unwrap();
    assert_eq!(text.matches("event: tool_result").count(), 2, "{text}");
    assert!(server.file("a.txt").is_some() && server.file("b.txt").is_none());
    assert!(model.chats()[1].to_string().contains("not that one"));
    assert_eq!(server.home.run(&["approvals"]).success(), "nothing waits for a decision\n");
}

#[test]
fn rules_tighten_what_is_approved_automatically_and_do_not_widen_what_only_reads() {
    let script = || {
        let write = |path: &str| ("write_file", json!({"path": path, "content": "x\n"}));
        [Reply::calls([write("asked.txt"), write("denied.txt"), write("allowed.txt")]), Reply::text("done")]
    };
    for (settings, written) in [("", true), ("approval = \"read-only\"\n", false)] {
        let model = FakeLlama::start(script());
        let server = TestDaemon::with(&model.url(), settings);
        server.home.write(
            "policy.toml",
            "ask = [\"write_file(asked.txt)\"]\ndeny = [\"write_file(denied.txt)\"]\nallow = [\"write_file(allowed.txt)\"]\n",
        );
        let answer = server.generate(&json!({"input": "go"})).expect(200).body;
        assert_eq!(server.file("allowed.txt").is_some(), written, "{answer}");
        assert!(server.file("asked.txt").is_none() && server.file("denied.txt").is_none(), "{answer}");
        assert!(answer.contains("deny `write_file(denied.txt)`"), "{answer}");
        assert!(model.chats()[1].to_string().contains("a rule asks about it: ask `write_file(asked.txt)`"));
    }
}
