//! Conversations whose history the client keeps and sends.

use std::fs;

use serde_json::json;

use super::{TestDaemon, three_tools};
use crate::fake_llama::{FakeLlama, Reply};

#[test]
fn a_history_is_returned_unchanged_with_new_entries() {
    let (model, server) = TestDaemon::with_model([Reply::text("c")]);
    // Unknown members, numbers that do not fit a float, and a signature of another model.
    let sent = r#"[{"role":"user","parts":[{"text":"a","x":1.50}],"extra":{"big":123456789012345678901234567890}},
        {"role":"model","parts":[{"text":"thinking","thought":true},{"text":"b","thoughtSignature":"AAAA"}]}]"#;
    let body = format!(r#"{{"input":"q","history":{sent}}}"#);
    let answer =
        server.send("/v1/generate", &[("Content-Type", "application/json")], body.as_bytes()).expect(200);
    for expected in [r#""x":1.50"#, "123456789012345678901234567890", "AAAA", r#""thought":true"#] {
        assert!(answer.body.contains(expected), "{expected}: {}", answer.body);
    }
    assert_eq!(answer.json()["history"].as_array().unwrap().len(), 4);
    let asked = model.chats()[0].to_string();
    assert!(!asked.contains("thinking") && asked.contains("\"b\""), "{asked}");
}

#[test]
fn tool_results_of_a_history_reach_the_model() {
    let [first, second] = three_tools();
    let (model, server) = TestDaemon::with_model([first, second, Reply::text("I remember")]);
    fs::write(server.home.work_dir().join("a.txt"), "alpha\n").unwrap();
    let history = server.generate(&json!({"input": "tool"})).expect(200).json()["history"].clone();
    server.generate(&json!({"input": "and?", "history": history})).expect(200);
    let chats = model.chats();
    let asked = chats[2]["messages"].as_array().unwrap();
    let results: Vec<_> = asked.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 3);
    assert!(results[0]["content"].as_str().unwrap().contains("alpha"));
    assert_eq!(asked[2]["tool_calls"].as_array().unwrap().len(), 3);
}

#[test]
fn eight_conversations_at_once_do_not_mix() {
    let model = FakeLlama::start([]).always(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let user_messages = messages.iter().filter(|message| message["role"] == "user");
        Reply::text(
            &user_messages.map(|message| message["content"].as_str().unwrap()).collect::<Vec<_>>().join("+"),
        )
    });
    let server = TestDaemon::start(&model);
    std::thread::scope(|scope| {
        let server = &server;
        for n in 0..8 {
            scope.spawn(move || {
                let history = json!([{"role": "user", "parts": [{"text": format!("h{n}")}]}, {"role": "model", "parts": [{"text": "m"}]}]);
                let answer = server.generate(&json!({"input": format!("i{n}"), "history": history})).expect(200);
                assert_eq!(answer.json()["output"], format!("h{n}+i{n}"));
            });
        }
    });
}
