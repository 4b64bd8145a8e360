//! Servers that say little about themselves, or refuse what others take.

use kontekst_core::{Image, Message, Role};
use kontekst_provider::{ChatRequest, Delta, ProviderError};
use serde_json::{Value, json};

use super::{TIMING, ask, connect, prompt, push_result, read_file, text};
use crate::fake_llama::{FakeLlama, Reply, Setup};

fn with_tool() -> ChatRequest {
    ChatRequest { tools: [read_file()].into(), ..prompt("read it") }
}

/// Starts a server that refuses a chat if `refusal` returns a message for its body.
fn refusing<T: Into<Value>>(mut refusal: impl FnMut(&Value) -> Option<T> + Send + 'static) -> FakeLlama {
    let setup = Setup { llama: false, ..Setup::default() };
    FakeLlama::with(setup, []).replay(move |request| {
        if !request.is_chat() {
            return None;
        }
        Some(match refusal(&request.body) {
            Some(message) => {
                let message: Value = message.into();
                let error =
                    json!({"object": "error", "message": message, "type": "BadRequestError", "code": 400});
                Reply::json(400, &error)
            }
            None => Reply::text("ok"),
        })
    })
}

fn notices(deltas: &[Delta]) -> usize {
    deltas.iter().filter(|delta| matches!(delta, Delta::Notice(_))).count()
}

/// Asks twice. The second request has to be right at once, and the user reads the notice once.
#[track_caller]
fn check(
    name: &str,
    request: &ChatRequest,
    refusal: impl Fn(&Value) -> Option<&'static str> + Send + 'static,
) {
    let fake = refusing(refusal);
    let provider = connect(&fake.url(), TIMING);
    for (asked, noticed) in [(2, 1), (3, 0)] {
        let (turn, deltas) = ask(&provider, request);
        assert_eq!(turn.unwrap_or_else(|error| panic!("{name}: {error}")).content, "ok", "{name}");
        assert_eq!((fake.chats().len(), notices(&deltas)), (asked, noticed), "{name}");
    }
}

#[test]
fn what_a_server_refuses_is_left_out_from_then_on() {
    let has = |body: &Value, field: &str| body.get(field).is_some();
    check("stream_options", &prompt("hi"), move |body| {
        has(body, "stream_options").then_some(
            "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]",
        )
    });
    check("max_tokens", &prompt("hi"), move |body| {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                       'max_completion_tokens' instead.";
        (has(body, "max_tokens") || body["max_completion_tokens"] != 64).then_some(message)
    });
    check("system", &prompt("hi"), |body| {
        (body["messages"][0]["role"] == "system").then_some("System role not supported")
    });
    for message in [
        "`tools` is not supported",
        "Tool use is not supported by this model",
        "litellm.UnsupportedParamsError: ollama does not support parameters: ['tools'], for model=gemma",
    ] {
        check(message, &with_tool(), move |body| has(body, "tools").then_some(message));
    }
    let mut request = with_tool();
    let fake = FakeLlama::start([Reply::calls([("read_file", json!({"path": "a"}))])]);
    let turn = ask(&connect(&fake.url(), TIMING), &request).0.unwrap();
    push_result(&mut request, &turn, "A");
    check("tool role", &request, |body| {
        let is_tool = |message: &Value| message["role"] == "tool";
        let messages = body["messages"].as_array().unwrap();
        messages
            .iter()
            .any(is_tool)
            .then_some("Conversation roles must alternate user/assistant/user/assistant/...")
    });
}

#[test]
fn images_of_earlier_prompts_are_left_out_where_a_server_refuses_them() {
    let mut request = prompt("what is it?");
    request.messages[0].images = vec![Image::new("a.gif", &b"GIF89a"[..]).unwrap()];
    let refusal = |body: &Value| {
        let has_image = body["messages"].to_string().contains("image_url");
        has_image.then_some("At most 0 image(s) may be provided in one prompt.")
    };
    let fake = refusing(refusal);
    let error = ask(&connect(&fake.url(), TIMING), &request).0.unwrap_err();
    assert!(matches!(error, ProviderError::Status { status: 400, .. }), "{error:?}");
    request.messages.push(Message::text(Role::Assistant, "a dot"));
    request.messages.push(Message::text(Role::User, "and now?"));
    check("image", &request, refusal);
}

#[test]
fn a_limit_that_does_not_fit_beside_the_prompt_is_lowered() {
    // The second server counts the prompt anew for each request.
    for (counts, asked) in [([900].as_slice(), 2), (&[900, 950, 1000], 4)] {
        let count = |tokens: u64| {
            format!(
                "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is \
                 4096 tokens and your request has {tokens} input tokens (4096 > 4096 - {tokens})."
            )
        };
        let mut refusals = counts.iter().map(|tokens| count(*tokens)).collect::<Vec<_>>().into_iter();
        let fake = refusing(move |_| refusals.next());
        let request = ChatRequest { max_tokens: 4096, ..prompt("hi") };
        assert_eq!(ask(&connect(&fake.url(), TIMING), &request).0.unwrap().content, "ok");
        let last = fake.chats().last().unwrap()["max_tokens"].as_u64();
        assert_eq!((fake.chats().len(), last), (asked, Some(4096 - counts.last().unwrap())));
    }
}

#[test]
fn names_and_ids_that_a_strict_server_refuses_are_not_sent_to_it() {
    let mut request = with_tool();
    let id = format!("call_{}", "a".repeat(70));
    let call = json!({"index": 0, "id": id, "function": {"name": "functions.read_file", "arguments": "{}"}});
    let fake = FakeLlama::start([Reply::deltas([json!({"tool_calls": [call]})])]);
    let turn = ask(&connect(&fake.url(), TIMING), &request).0.unwrap();
    push_result(&mut request, &turn, "A");
    let fake = refusing(|_| None::<String>);
    ask(&connect(&fake.url(), TIMING), &request).0.unwrap();
    let sent = &fake.chats()[0]["messages"][2]["tool_calls"][0];
    assert_eq!(sent["function"]["name"], "read_file");
    let id = sent["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    assert_eq!(fake.chats()[0]["messages"][3]["tool_call_id"], id);
}

#[test]
fn thoughts_between_tags_are_no_answer() {
    for answer in ["<think>\nplan\n</think>\n\nParis", "plan\n</think>\n\nParis"] {
        let fake = FakeLlama::start([Reply::deltas(
            answer.split_inclusive('n').map(|part| json!({"content": part})),
        )]);
        let (turn, deltas) = ask(&connect(&fake.url(), TIMING), &prompt("hi"));
        let turn = turn.unwrap();
        assert_eq!((turn.content.as_str(), turn.reasoning.as_str()), ("Paris", "plan"));
        let last = deltas.iter().rposition(|delta| matches!(delta, Delta::WasThought)).map_or(0, |at| at + 1);
        assert_eq!(text(&deltas[last..]), "Paris");
    }
}
