//! Requests of OpenAI's API about the answer: formats, forced calls and settings, and the errors of the model server.

use serde_json::{Value, json};

use super::{Response, TestDaemon};
use crate::fake_llama::{FakeLlama, Reply, Setup};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

fn ask(mut settings: Value) -> Value {
    settings["messages"] = json!([{"role": "user", "content": "Who is it?"}]);
    settings
}

fn function(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    json!({"type": "function", "function": {"name": name, "parameters": schema}})
}

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

fn content(response: &Response) -> Value {
    response.json()["choices"][0]["message"]["content"].clone()
}

#[test]
fn settings_are_passed_on() {
    let (model, server) = TestDaemon::with_model([Reply::text("Ada")]);
    let settings = json!({
        "n": 1, "stop": ["END", "\n\n"], "seed": 7, "presence_penalty": 0.5, "frequency_penalty": -0.5,
        "logit_bias": {"15": -100}, "reasoning_effort": "low", "response_format": {"type": "json_object"}, "tools": [],
    });
    server.post(CHAT, &ask(settings.clone())).expect(200);
    let asked = &model.chats()[0];
    for (name, value) in settings.as_object().unwrap() {
        if !["n", "stop", "tools"].contains(&name.as_str()) {
            assert_eq!(&asked[name], value, "{name}");
        }
    }
    assert_eq!(asked["stop"], settings["stop"]);
    assert_eq!(asked["chat_template_kwargs"]["reasoning_effort"], "low");
}

#[test]
fn an_answer_has_the_format_and_the_tools_keep_working() {
    let read = || Reply::calls([("read_file", json!({"path": "a.txt"}))]);
    let model = FakeLlama::start([]).always(move |request| {
        let format = &request.body["response_format"];
        let read_it = request.body["messages"].to_string().contains("1: alpha");
        match (format.is_null(), read_it) {
            (true, false) => read(),
            (true, true) => Reply::text("It says alpha."),
            (false, _) => Reply::text("{\"name\": \"alpha\"}").usage(10, 5, 0),
        }
    });
    let server = TestDaemon::start(&model);
    std::fs::write(server.home.work_dir().join("a.txt"), "alpha\n").unwrap();
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "p", "schema": person(), "strict": true}});
    let answer = server.post(CHAT, &ask(json!({"response_format": format}))).expect(200);
    assert_eq!(content(&answer), "{\"name\": \"alpha\"}");
    let formats: Vec<_> = model.chats().iter().map(|chat| chat["response_format"].clone()).collect();
    assert_eq!(formats, [Value::Null, Value::Null, format.clone()]);
    // The tools stay in the prompt, so that the server has read it already.
    let (draft, last) = (&model.chats()[1], &model.chats()[2]);
    assert_eq!((&last["tools"], &last["messages"]), (&draft["tools"], &draft["messages"]));
    assert_eq!(last["tool_choice"], "none");

    let streamed = server.post(CHAT, &ask(json!({"response_format": format, "stream": true}))).expect(200);
    assert!(!streamed.body.contains("It says"), "{}", streamed.body);
    let text = json!({"format": {"type": "json_schema", "name": "p", "schema": person(), "strict": true}});
    let response =
        server.post(RESPONSES, &json!({"input": "Who is it?", "text": text, "tools": []})).expect(200);
    assert_eq!(response.json()["output"][0]["content"][0]["text"], "{\"name\": \"alpha\"}");
    assert_eq!(model.chats().last().unwrap()["response_format"], format);
    assert_eq!(model.chats().len(), 3 + 3 + 1, "without tools one request is enough");
    let raw = r#"{"messages":[{"role":"user","content":"x"}],"tools":[],"response_format":{"type":"json_schema",
        "json_schema":{"name":"p","schema":{"type":"object","properties":{"why":{},"answer":{}}}}}}"#;
    server.send(CHAT, &[("Content-Type", "application/json")], raw.as_bytes()).expect(200);
    let requests = model.requests();
    let sent = String::from_utf8_lossy(&requests.iter().rfind(|request| request.is_chat()).unwrap().raw)
        .into_owned();
    assert!(sent.contains(r#"{"why":{},"answer":{}}"#), "models write in the order of the schema: {sent}");
}

#[test]
fn a_call_can_be_forced() {
    let bern = || Reply::text("{\"city\": \"Bern\"}");
    let (model, server) =
        TestDaemon::with_model([bern(), bern(), Reply::calls([("g", json!({"city": "Rom"}))]), bern()]);
    let named = json!({"type": "function", "function": {"name": "g"}});
    let (one, two) = (json!([function("g")]), json!([function("f"), function("g")]));
    let name =
        |response: &Response| response.json()["choices"][0]["message"]["tool_calls"][0]["function"].clone();
    for (tools, choice) in [(&two, &named), (&one, &json!("required")), (&two, &json!("required"))] {
        let request = ask(json!({"tools": tools, "tool_choice": choice}));
        let response = server.post(CHAT, &request).expect(200);
        assert_eq!(name(&response)["name"], "g", "{choice}");
        assert_eq!(response.json()["choices"][0]["finish_reason"], "tool_calls");
    }
    // llama.cpp cannot force a named tool. A grammar of its arguments does.
    let chats = model.chats();
    assert_eq!(chats[0]["response_format"]["json_schema"]["schema"], function("g")["function"]["parameters"]);
    assert_eq!(chats[1]["tool_choice"], "none");
    assert_eq!((&chats[2]["tool_choice"], &chats[2]["response_format"]), (&json!("required"), &Value::Null));
    let parameters = function("g")["function"]["parameters"].clone();
    let tool = json!({"type": "function", "name": "g", "parameters": parameters});
    let request = json!({"input": "x", "tools": [tool], "tool_choice": {"type": "function", "name": "g"}});
    assert_eq!(server.post(RESPONSES, &request).expect(200).json()["output"][0]["name"], "g");
}

#[test]
fn another_server_is_asked_for_a_named_call() {
    let setup = Setup { llama: false, ..Setup::default() };
    let model = FakeLlama::with(setup, [Reply::calls([("g", json!({"city": "Rom"}))])]);
    let server = TestDaemon::start(&model);
    let named = json!({"type": "function", "function": {"name": "g"}});
    let request = ask(json!({"tools": [function("f"), function("g")], "tool_choice": named}));
    server.post(CHAT, &request).expect(200);
    assert_eq!(model.chats()[0]["tool_choice"], named);
}

#[test]
fn calls_come_one_by_one_if_the_client_wants_that() {
    let calls = || Reply::calls([("f", json!({"city": "Rom"})), ("f", json!({"city": "Bern"}))]);
    let (_model, server) = TestDaemon::with_model([calls(), calls()]);
    for (parallel, count) in [(true, 2), (false, 1)] {
        let request = ask(json!({"tools": [function("f")], "parallel_tool_calls": parallel}));
        let message = server.post(CHAT, &request).expect(200).json()["choices"][0]["message"].clone();
        assert_eq!(message["tool_calls"].as_array().unwrap().len(), count);
    }
}

#[test]
fn call_ids_are_unique_in_a_conversation() {
    let model = FakeLlama::start([]).always(|_| Reply::calls([("f", json!({"city": "Rom"}))]));
    let server = TestDaemon::start(&model);
    let mut messages = json!([{"role": "user", "content": "go"}]);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let request = json!({"messages": messages, "tools": [function("f")]});
        let message = server.post(CHAT, &request).expect(200).json()["choices"][0]["message"].clone();
        let id = message["tool_calls"][0]["id"].clone();
        assert!(ids.insert(id.to_string()), "{id} comes twice");
        let list = messages.as_array_mut().unwrap();
        list.push(message);
        list.push(json!({"role": "tool", "tool_call_id": id, "content": "sun"}));
    }
}

#[test]
fn reasoning_is_an_item_of_a_response() {
    let model = FakeLlama::start([]).always(|_| Reply::reasoning("Hm.", "Ada"));
    let server = TestDaemon::start(&model);
    let output = server.post(RESPONSES, &json!({"input": "x"})).expect(200).json()["output"].clone();
    assert_eq!(output[0]["type"], "reasoning");
    assert_eq!(output[0]["content"], json!([{"type": "reasoning_text", "text": "Hm."}]));
    assert_eq!((&output[1]["type"], &output[1]["content"][0]["text"]), (&json!("message"), &json!("Ada")));
    let streamed = server.post(RESPONSES, &json!({"input": "x", "stream": true})).expect(200);
    let done: Vec<Value> = streamed
        .data("response.output_item.done")
        .iter()
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!((&done[0]["output_index"], &done[0]["item"]["type"]), (&json!(0), &json!("reasoning")));
    assert_eq!((&done[1]["output_index"], &done[1]["item"]["type"]), (&json!(1), &json!("message")));
    assert_eq!(streamed.data("response.reasoning_text.delta").len(), 1);
}

#[test]
fn the_status_of_the_model_server_is_kept() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (503, "server_error"),
        (529, "server_error"),
    ] {
        let body = r#"{"error":{"message":"not now"}}"#;
        let refusal = move || {
            Reply::raw(format!(
                "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\nretry-after: 7\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            ))
        };
        let model = FakeLlama::start([]).always(move |_| refusal());
        let server = TestDaemon::start(&model);
        for stream in [false, true] {
            let chat = server.post(CHAT, &ask(json!({"stream": stream})));
            let response = server.post(RESPONSES, &json!({"input": "x", "stream": stream}));
            for answer in [chat, response] {
                let answer = answer.expect(status);
                assert_eq!(answer.json()["error"]["type"], kind, "{answer:?}");
                assert!(
                    answer.json()["error"]["message"].as_str().unwrap().contains("not now"),
                    "{answer:?}"
                );
                assert_eq!(answer.headers["retry-after"], "7", "{answer:?}");
            }
        }
    }
}

#[test]
fn every_error_of_the_openai_paths_has_their_form() {
    let server = TestDaemon::start(&FakeLlama::start([]));
    for (method, path) in [("GET", "/v1/files"), ("POST", "/v1/embeddings"), ("GET", "/v1/chat/completions")]
    {
        let error = server.request(method, path, &[]).expect(404).json()["error"].clone();
        assert_eq!(error["code"], "unknown_url", "{path}");
        assert!(error["message"].as_str().unwrap().contains(path), "{error}");
    }
    // A browser sends such a header, and is told about a wrong key.
    let key = [("Authorization", "Bearer not-needed"), ("Sec-Fetch-Site", "same-origin")];
    for path in ["/v1/models", "/v1/chat/completions", "/v1/nothing"] {
        let error = server.request("GET", path, &key).expect(401).json()["error"].clone();
        assert_eq!(error["code"], "invalid_api_key");
        assert!(error["message"].as_str().unwrap().contains("kontekst status --token"), "{error}");
    }
    assert_eq!(server.request("GET", "/v1/generate", &key).expect(401).error(), "Unauthorized");
    assert_eq!(server.get("/v1/generate").expect(404).error(), "Not Found");
    let nameless = json!({"input": "x", "tools": [{"type": "function"}]});
    let error = server.post(RESPONSES, &nameless).expect(400).json()["error"].clone();
    assert_eq!((&error["param"], &error["message"]), (&json!("tools"), &json!("a function has no name")));
    let prefill = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "The answer"}]);
    let error = server.post(CHAT, &json!({"messages": prefill})).expect(400).json()["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("cannot be continued"), "{error}");
}
