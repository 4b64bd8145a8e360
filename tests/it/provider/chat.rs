//! Chat requests and answers of a well-behaved server.

use std::time::Duration;

use kontekst_core::{CallId, Cancel, Message, Role, Sampling, ToolResult};
use kontekst_provider::{
    Capabilities, Delta, FinishReason, Progress, Provider as _, ProviderError, ToolRole, Usage,
};
use serde_json::json;

use super::{TIMING, ask, connect, prompt, read_file, text};
use crate::fake_llama::{FakeLlama, Reply, Setup, gate};

#[test]
fn a_text_arrives_in_pieces_that_make_up_the_whole() {
    let fake = FakeLlama::start([Reply::reasoning("let me see", "hello big world").usage(12, 3, 4)]);
    let (turn, deltas) = ask(&connect(&fake.url(), TIMING), &prompt("hi"));
    let turn = turn.unwrap();
    assert_eq!(turn.content, "hello big world");
    assert_eq!(text(&deltas), turn.content);
    assert_eq!(deltas[1], Delta::Reasoning("let me see".to_owned()));
    assert_eq!(turn.reasoning, "let me see");
    assert_eq!(turn.finish_reason, FinishReason::Stop);
    assert_eq!(turn.usage, Some(Usage { prompt: 12, completion: 3, cached: 4 }));
    fake.assert_clean();
}

#[test]
fn a_token_is_delivered_before_the_next_one_arrives() {
    let (wait, key) = gate();
    let fake = FakeLlama::start([Reply::text("one").then_wait(wait).then_text(" two")]);
    let provider = connect(&fake.url(), TIMING);
    let (mut key, mut seen) = (Some(key), String::new());
    let turn = provider.generate(&prompt("hi"), &Cancel::new(), &mut |delta| {
        if let Delta::Text(text) = delta {
            seen.push_str(&text);
        }
        // The server sends the rest only after this.
        if seen == "one" {
            key.take().unwrap().open();
        }
    });
    assert_eq!(turn.unwrap().content, "one two");
    assert!(key.is_none());
}

#[test]
fn the_request_has_the_documented_fields() {
    let fake = FakeLlama::start([Reply::text("ok"), Reply::text("ok")]);
    let provider = connect(&fake.url(), TIMING);
    let mut request = prompt("hi");
    request.tools = [read_file()].into();
    request.sampling = Sampling {
        temperature: Some(0.7),
        top_p: Some(0.9),
        top_k: Some(40),
        repeat_penalty: Some(1.1),
        max_tokens: Some(4096),
    };
    ask(&provider, &request).0.unwrap();
    ask(&provider, &prompt("hi")).0.unwrap();
    let chats = fake.chats();
    assert_eq!(
        chats[0],
        json!({
            "model": "tiny",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "read_file", "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}],
            "max_tokens": 64, "temperature": 0.7, "top_p": 0.9, "top_k": 40, "repeat_penalty": 1.1,
            "stream": true, "stream_options": {"include_usage": true},
            "return_progress": true, "cache_prompt": true,
        })
    );
    let absent = ["tools", "temperature", "top_p", "top_k", "repeat_penalty"];
    assert!(absent.iter().all(|key| chats[1].get(key).is_none()), "{}", chats[1]);
    fake.assert_clean();
}

#[test]
fn another_engine_gets_no_llama_cpp_fields() {
    let setup = Setup { llama: false, ..Setup::default() };
    let fake = FakeLlama::with(setup, [Reply::text("ok")]);
    let provider = connect(&fake.url(), TIMING);
    let Capabilities { window, slots, .. } = provider.capabilities();
    assert_eq!((window, slots), (Some(16_384), 256));
    assert_eq!(provider.count_tokens(&["12345678"], &Cancel::new()), [2]);
    let mut request = prompt("hi");
    request.messages.push(Message { reasoning: "hm".to_owned(), ..Message::text(Role::Assistant, "a") });
    request.messages.push(Message::text(Role::User, "b"));
    ask(&provider, &request).0.unwrap();
    let chat = &fake.chats()[0];
    assert!(chat.get("return_progress").is_none() && chat.get("cache_prompt").is_none());
    assert!(chat["messages"][2].get("reasoning_content").is_none());
}

#[test]
fn calls_and_their_results_round_trip() {
    let calls = [("read_file", json!({"path": "a"})), ("read_file", json!({"path": "b"}))];
    for tool_role in [ToolRole::Native, ToolRole::Text, ToolRole::Auto] {
        let fake = FakeLlama::start([Reply::calls(calls.clone()), Reply::text("done")]);
        let provider = connect(&fake.url(), TIMING);
        let mut request = prompt("read");
        request.tool_role = tool_role;
        let turn = ask(&provider, &request).0.unwrap();
        assert_eq!(turn.calls.len(), 2);
        assert_eq!(turn.calls[1].arguments, r#"{"path":"b"}"#);
        let mut assistant = Message::text(Role::Assistant, "");
        assistant.tool_calls.clone_from(&turn.calls);
        request.messages.push(assistant);
        for (call, output) in turn.calls.iter().zip(["A", "B"]) {
            request.messages.push(Message::result(ToolResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                output: output.to_owned(),
                is_error: false,
            }));
        }
        assert_eq!(ask(&provider, &request).0.unwrap().content, "done");
        fake.assert_clean();
    }
}

#[test]
fn a_cut_call_is_not_delivered() {
    let fake = FakeLlama::start([Reply::calls([("read_file", json!("{\"path"))]).finish("length")]);
    let turn = ask(&connect(&fake.url(), TIMING), &prompt("hi")).0.unwrap();
    assert_eq!((turn.calls.len(), turn.finish_reason), (0, FinishReason::Length));
}

#[test]
fn a_loading_model_is_waited_for() {
    let fake = FakeLlama::start([Reply::loading(), Reply::loading(), Reply::text("here")]);
    let (turn, deltas) = ask(&connect(&fake.url(), TIMING), &prompt("hi"));
    assert_eq!(turn.unwrap().content, "here");
    let loading = Delta::Progress(Progress::Loading { model: "tiny".to_owned(), fraction: None });
    assert_eq!(deltas.iter().filter(|delta| **delta == loading).count(), 2);
}

#[test]
fn an_overflow_is_reported_with_its_numbers() {
    let fake = FakeLlama::start([Reply::overflow(5000, 4096)]);
    let error = ask(&connect(&fake.url(), TIMING), &prompt("hi")).0.unwrap_err();
    assert!(matches!(error, ProviderError::Overflow { prompt_tokens: 5000, window: 4096 }), "{error:?}");
}

#[test]
fn a_refusal_is_reported_with_status_and_message() {
    let fake =
        FakeLlama::start([Reply::error(400, "no such thing"), Reply::text("on").then_error(500, "full")]);
    let provider = connect(&fake.url(), TIMING);
    let error = ask(&provider, &prompt("hi")).0.unwrap_err();
    assert_eq!(error.to_string(), "the model server answered 400: no such thing");
    let (turn, deltas) = ask(&provider, &prompt("hi"));
    assert_eq!(turn.unwrap_err().to_string(), "the model server answered 500: full");
    assert_eq!(text(&deltas), "on"); // the text before the error is kept
}

#[test]
fn a_silent_server_is_given_up_and_a_slow_one_is_not() {
    let short = Duration::from_millis(600);
    let timing = super::Timing { first_token: short, between_tokens: short, ..TIMING };
    // Each pause is much shorter than this limit, also on a busy machine, and together they are longer.
    let limit = Duration::from_millis(1500);
    let slow = (0..20).fold(Reply::text("a"), |reply, _| reply.then_pause(limit / 15).then_text("b"));
    let fake = FakeLlama::start([
        Reply::hang(),
        Reply::text("one ").then_hang(),
        // SSE comments keep the connection open, but they do not count as an answer.
        Reply::deltas([]).then_repeat(": ping\n\n", 100).then_hang(),
        slow,
    ]);
    let provider = connect(&fake.url(), timing);
    for started in [false, true, false] {
        let error = ask(&provider, &prompt("hi")).0.unwrap_err();
        let ProviderError::Unreachable { started: was, source, .. } = error else { panic!("{error:?}") };
        assert_eq!((was, source.kind()), (started, std::io::ErrorKind::TimedOut));
    }
    let provider = connect(&fake.url(), super::Timing { between_tokens: limit, ..TIMING });
    assert_eq!(ask(&provider, &prompt("hi")).0.unwrap().content, format!("a{}", "b".repeat(20)));
}

#[test]
fn progress_is_reported() {
    let fake =
        FakeLlama::start([Reply::text("x"), Reply::deltas([]).then_progress(256, 1024).then_text("y")]);
    let provider = connect(&fake.url(), TIMING);
    ask(&provider, &prompt("hi")).0.unwrap();
    let deltas = ask(&provider, &prompt("hi")).1;
    let prefill = Progress::Prefill { processed: 256, total: 1024, cached: 0 };
    let server = fake.address().to_string();
    assert_eq!(deltas[0], Delta::Progress(Progress::Requested { model: "tiny".to_owned(), server }));
    assert_eq!(deltas[1], Delta::Progress(prefill));
}

#[test]
fn token_counts_are_cached() {
    let fake = FakeLlama::start([]);
    let provider = connect(&fake.url(), TIMING);
    let cancel = Cancel::new();
    let texts = ["12345", "", "<|im_end|>", "12345"];
    assert_eq!(provider.count_tokens(&texts, &cancel), [2, 0, 3, 2]);
    assert_eq!(provider.count_tokens(&["<|im_end|>", "12345678"], &cancel), [3, 2]);
    let asked: Vec<_> = fake.requests().into_iter().filter(|request| request.path == "/tokenize").collect();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].body, json!({"model": "tiny", "content": ["12345678", -1], "parse_special": false}));
    drop(fake);
    assert_eq!(provider.count_tokens(&["123456789"], &cancel), [2]); // an estimate, because the server is gone
}

#[test]
fn tool_results_are_sent_as_text_to_a_template_without_tools() {
    let setup = Setup { tools: false, ..Setup::default() };
    let fake = FakeLlama::with(setup, [Reply::text("ok")]);
    let mut request = prompt("hi");
    let id = CallId::new("a");
    let mut assistant = Message::text(Role::Assistant, "");
    assistant.tool_calls.push(kontekst_core::ToolCall {
        id: id.clone(),
        name: "f".to_owned(),
        arguments: String::new(),
    });
    request.messages.push(assistant);
    let result = ToolResult { call_id: id, name: "f".to_owned(), output: "out".to_owned(), is_error: false };
    request.messages.push(Message::result(result));
    ask(&connect(&fake.url(), TIMING), &request).0.unwrap();
    assert_eq!(fake.chats()[0]["messages"][3], json!({"role": "user", "content": "Tool: f\n\nResult:\nout"}));
    fake.assert_clean();
}
