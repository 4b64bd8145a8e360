//! Requests and answers of models that work in steps.

use kontekst_core::{AnswerFormat, Message, Role, ToolChoice};
use kontekst_provider::{ChatRequest, ToolRole};
use serde_json::{Value, json};

use super::{TIMING, ask, connect, prompt, push_result, read_file, text};
use crate::fake_llama::{FakeLlama, Reply, Setup};

const CALL: &str = r#"{"tool": "read_file", "path": "a"}"#;
const ANSWER: &str = r#"{"tool": "answer", "text": "It is \"b\"."}"#;

fn steps(text: &str) -> ChatRequest {
    let mut request = prompt(text);
    request.tools = [read_file()].into();
    request.tool_role = ToolRole::Steps;
    request
}

#[test]
fn each_answer_is_decoded_under_the_schema_of_a_step() {
    let fake = FakeLlama::start([Reply::text(CALL), Reply::text(ANSWER), Reply::text(ANSWER)]);
    let provider = connect(&fake.url(), TIMING);
    let mut request = steps("read it");
    let (turn, deltas) = ask(&provider, &request);
    let turn = turn.unwrap();
    assert_eq!((&*turn.calls[0].name, &*turn.calls[0].arguments), ("read_file", r#"{"path": "a"}"#));
    assert_eq!((turn.content.as_str(), text(&deltas).as_str()), ("", ""), "a call is no text");

    push_result(&mut request, &turn, "1: b");
    let (turn, deltas) = ask(&provider, &request);
    let turn = turn.unwrap();
    assert_eq!((turn.content.as_str(), text(&deltas).as_str()), ("It is \"b\".", "It is \"b\"."));
    assert!(turn.calls.is_empty());

    request.messages.push(Message::text(Role::Assistant, turn.content));
    request.messages.push(Message::text(Role::User, "sure?"));
    ask(&provider, &request).0.unwrap();
    let chats = fake.chats();
    for chat in &chats {
        assert!(chat.get("tools").is_none());
        let schema = &chat["response_format"]["json_schema"]["schema"];
        assert_eq!(schema["anyOf"][0]["properties"]["tool"]["const"], "read_file");
        assert_eq!(schema["anyOf"][1]["properties"]["tool"]["const"], "answer");
        assert!(chat["messages"][0]["content"].as_str().unwrap().contains(r#"{"tool": "read_file""#));
    }
    let last = chats[2]["messages"].as_array().unwrap();
    assert_eq!(last[2], json!({"role": "assistant", "content": CALL}));
    let result = last[3]["content"].as_str().unwrap();
    assert!(
        result.starts_with("Result of read_file:\n1: b\n\n") && result.ends_with("The request: read it"),
        "{result}"
    );
    assert_eq!(last[4], json!({"role": "assistant", "content": ANSWER}));
    assert_eq!(last[5], json!({"role": "user", "content": "sure?"}));
    // A server's prompt cache needs each request to begin with the one before.
    let earlier = chats[1]["messages"].as_array().unwrap();
    assert_eq!(&last[..earlier.len()], &earlier[..]);
}

#[test]
fn the_text_of_an_answer_is_the_same_however_it_is_cut() {
    let pieces = ["{\"tool\": \"ans", "wer\", \"text\": \"It", " is", " b.\\", "n\"}"];
    let fake = FakeLlama::start([Reply::deltas(pieces.map(|piece| json!({"content": piece})))]);
    let (turn, deltas) = ask(&connect(&fake.url(), TIMING), &steps("read it"));
    assert_eq!((turn.unwrap().content.as_str(), text(&deltas).as_str()), ("It is b.\n", "It is b.\n"));
}

#[test]
fn a_server_that_takes_no_schema_is_asked_in_its_own_way_from_then_on() {
    let refusal = "'response_format.type' must be 'text'";
    let setup = Setup { llama: false, ..Setup::default() };
    let fake = FakeLlama::with(setup, [Reply::error(400, refusal), Reply::text("ok"), Reply::text("ok")]);
    let provider = connect(&fake.url(), TIMING);
    for _ in 0..2 {
        assert_eq!(ask(&provider, &steps("hello")).0.unwrap().content, "ok");
    }
    let chats = fake.chats();
    let stepped: Vec<bool> = chats.iter().map(|chat| chat.get("response_format").is_some()).collect();
    assert_eq!(stepped, [true, false, false]);
    assert!(chats[2].get("tools").is_some());
}

#[test]
fn without_tools_there_are_no_steps() {
    let fake = FakeLlama::start([Reply::text("ok")]);
    let request = ChatRequest { tools: [].into(), ..steps("hello") };
    ask(&connect(&fake.url(), TIMING), &request).0.unwrap();
    assert!(fake.chats()[0].get("response_format").is_none());
}

#[test]
fn an_answer_with_a_format_of_its_own_is_no_step() {
    let json = r#"{"tool": "read_file", "path": "a"}"#;
    let fake = FakeLlama::start([Reply::text(json)]);
    let mut request = steps("as JSON, please");
    request.options.format = AnswerFormat::JsonObject;
    request.options.tool_choice = ToolChoice::None;
    let (turn, _) = ask(&connect(&fake.url(), TIMING), &request);
    assert_eq!(turn.unwrap().content, json);
    let chat = &fake.chats()[0];
    assert_eq!(chat["response_format"], json!({"type": "json_object"}));
    assert_eq!(chat["tool_choice"], "none");
    assert_eq!(chat["messages"][0]["content"], "Be brief.", "nothing is said of steps");
}

#[test]
fn a_tool_choice_is_what_the_schema_allows() {
    let offered = |choice: ToolChoice, answer: &str| -> Vec<Value> {
        let fake = FakeLlama::start([Reply::text(answer)]);
        let mut request = steps("read it");
        request.options.tool_choice = choice;
        ask(&connect(&fake.url(), TIMING), &request).0.unwrap();
        let schema = &fake.chats()[0]["response_format"]["json_schema"]["schema"];
        schema["anyOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["properties"]["tool"]["const"].clone())
            .collect()
    };
    assert_eq!(offered(ToolChoice::Auto, ANSWER), [json!("read_file"), json!("answer")]);
    assert_eq!(offered(ToolChoice::Required, CALL), [json!("read_file")]);
    assert_eq!(offered(ToolChoice::None, ANSWER), [json!("answer")]);
}

/// Returns whether an agent that leaves the way of calling open works in steps, at a server that says this of its model.
fn chooses_steps(model: &Value) -> bool {
    let models = json!({"data": [model]});
    let fake = FakeLlama::start([Reply::text(ANSWER)])
        .replay(move |request| (request.path == "/v1/models").then(|| Reply::json(200, &models)));
    let request = ChatRequest { tool_role: ToolRole::Auto, ..steps("read it") };
    ask(&connect(&fake.url(), TIMING), &request).0.unwrap();
    fake.chats()[0].get("response_format").is_some()
}

#[test]
fn a_small_model_works_in_steps_unless_the_agent_says_otherwise() {
    let small = json!({"id": "fake", "meta": {"n_params": 1_543_714_304_u64}});
    let large = json!({"id": "fake", "meta": {"n_params": 20_914_757_184_u64}});
    let unknown = json!({"id": "fake", "meta": null});
    assert_eq!([small, large, unknown].map(|model| chooses_steps(&model)), [true, false, false]);
}
