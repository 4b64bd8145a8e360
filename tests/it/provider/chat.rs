//! Chat requests and answers of a well-behaved server.

use std::time::Duration;

use kontekst_core::{Cancel, Message, Role, Sampling};
use kontekst_provider::{Capabilities, Delta, Progress, Provider as _, ProviderError};
use serde_json::json;

use super::{TIMING, ask, connect, prompt, read_file};
use crate::fake_llama::{FakeLlama, Reply, Setup};

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
fn a_loading_model_is_waited_for() {
    let fake = FakeLlama::start([Reply::loading(), Reply::loading(), Reply::text("here")]);
    let (turn, deltas) = ask(&connect(&fake.url(), TIMING), &prompt("hi"));
    assert_eq!(turn.unwrap().content, "here");
    let loading = Delta::Progress(Progress::Loading { model: "tiny".to_owned(), fraction: None });
    assert_eq!(deltas.iter().filter(|delta| **delta == loading).count(), 2);
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
