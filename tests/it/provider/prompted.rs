//! Requests and answers of models whose tool calls are plain text.

use kontekst_core::{Message, Role};
use kontekst_provider::{ChatRequest, Provider as _, ProviderError, ToolRole};
use serde_json::{Value, json};

use super::{TIMING, ask, connect, prompt, push_result, read_file, text};
use crate::fake_llama::{FakeLlama, Reply, Setup};

const CALL: &str = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";

fn with_tool() -> ChatRequest {
    let mut request = prompt("read it");
    request.tools = [read_file()].into();
    request
}

/// Starts a server whose chat template has the capabilities `caps`.
fn template(caps: Value, script: impl IntoIterator<Item = Reply>) -> FakeLlama {
    FakeLlama::start(script).replay(move |request| {
        let props = json!({
            "default_generation_settings": {"n_ctx": 4096}, "total_slots": 1, "chat_template_caps": caps,
        });
        (request.path == "/props").then(|| Reply::json(200, &props))
    })
}

#[test]
fn the_tool_role_decides_and_auto_asks_the_template() {
    for (tools, role, native) in [
        (true, ToolRole::Auto, true),
        (true, ToolRole::Text, true),
        (true, ToolRole::Native, true),
        (false, ToolRole::Auto, false),
        (false, ToolRole::Text, false),
        (false, ToolRole::Native, true),
        (true, ToolRole::Prompted, false),
        (false, ToolRole::Prompted, false),
    ] {
        let fake = FakeLlama::with(Setup { tools, ..Setup::default() }, [Reply::text("ok")]);
        let mut request = with_tool();
        request.tool_role = role;
        ask(&connect(&fake.url(), TIMING), &request).0.unwrap();
        let chat = &fake.chats()[0];
        assert_eq!(chat.get("tools").is_some(), native, "{tools} {role:?}");
        assert_eq!(chat["messages"][0]["content"].as_str().unwrap().contains("<tools>"), !native);
    }
}

/// Ollama and a vLLM without a tool call parser refuse requests with tools.
#[test]
fn a_server_that_refuses_tools_is_prompted_in_text_from_then_on() {
    for refusal in [
        "registry.ollama.ai/library/gemma2:2b does not support tools",
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
    ] {
        let setup = Setup { llama: false, ..Setup::default() };
        let fake = FakeLlama::with(setup, [Reply::error(400, refusal), Reply::text(CALL), Reply::text("ok")]);
        let provider = connect(&fake.url(), TIMING);
        assert!(!provider.capabilities().tools_in_prompt);
        let turn = ask(&provider, &with_tool()).0.unwrap();
        assert_eq!((turn.calls.len(), turn.calls[0].name.as_str()), (1, "read_file"), "{turn:?}");
        assert!(provider.capabilities().tools_in_prompt);
        ask(&provider, &with_tool()).0.unwrap();
        let chats = fake.chats();
        let native: Vec<bool> = chats.iter().map(|chat| chat.get("tools").is_some()).collect();
        assert_eq!(native, [true, false, false]);
    }
}

#[test]
fn native_tools_without_support_are_an_error() {
    let setup = Setup { llama: false, ..Setup::default() };
    let fake = FakeLlama::with(setup, [Reply::error(400, "m does not support tools")]);
    let request = ChatRequest { tool_role: ToolRole::Native, ..with_tool() };
    let error = ask(&connect(&fake.url(), TIMING), &request).0.unwrap_err();
    assert!(matches!(error, ProviderError::Status { status: 400, .. }), "{error:?}");
}

#[test]
fn calls_in_the_text_of_a_native_answer_are_found_unless_that_is_off() {
    let native = |rescue| {
        let fake = FakeLlama::with(Setup { llama: false, ..Setup::default() }, [Reply::text(CALL)]);
        let request = ChatRequest { tool_role: ToolRole::Native, rescue, ..with_tool() };
        ask(&connect(&fake.url(), TIMING), &request).0.unwrap()
    };
    assert_eq!(native(true).calls.len(), 1);
    let bare = native(false);
    assert_eq!((bare.calls.len(), bare.content.as_str()), (0, CALL));
}

#[test]
fn thinking_is_switched_off_by_a_variable_of_the_template() {
    let fake = FakeLlama::start([Reply::text("yes"), Reply::text("no")]);
    let provider = connect(&fake.url(), TIMING);
    ask(&provider, &prompt("hm?")).0.unwrap();
    ask(&provider, &ChatRequest { thinking: false, ..prompt("hm?") }).0.unwrap();
    let chats = fake.chats();
    assert!(chats[0].get("chat_template_kwargs").is_none());
    assert_eq!(chats[1]["chat_template_kwargs"], json!({"enable_thinking": false}));
}

#[test]
fn a_template_with_partial_tool_support_is_prompted_in_text() {
    for caps in
        [json!({"supports_tools": true, "supports_tool_calls": false}), json!({"supports_tools": false})]
    {
        let fake = template(caps, [Reply::text(CALL)]);
        let (turn, deltas) = ask(&connect(&fake.url(), TIMING), &with_tool());
        let turn = turn.unwrap();
        assert_eq!(
            (turn.calls[0].name.as_str(), turn.calls[0].arguments.as_str()),
            ("read_file", "{\"path\": \"a\"}")
        );
        assert_eq!((turn.content.as_str(), text(&deltas).as_str()), ("", ""));
        assert!(fake.chats()[0].get("tools").is_none());
    }
}

#[test]
fn without_a_system_role_everything_goes_into_the_first_message() {
    let caps = json!({"supports_tools": false, "supports_tool_calls": false, "supports_system_role": false});
    let fake = template(caps, [Reply::text(CALL), Reply::text("done")]);
    let provider = connect(&fake.url(), TIMING);
    let mut request = with_tool();
    request.messages.push(Message::text(Role::System, "be kind"));
    let turn = ask(&provider, &request).0.unwrap();
    push_result(&mut request, &turn, "A");
    request.messages.push(Message::text(Role::User, "and?"));
    ask(&provider, &request).0.unwrap();
    let chats = fake.chats();
    let first = chats[0]["messages"].as_array().unwrap();
    assert_eq!((first.len(), &first[0]["role"]), (1, &json!("user")));
    let content = first[0]["content"].as_str().unwrap();
    assert!(content.starts_with("Be brief.\n\n# Tools\n"), "{content}");
    assert!(content.ends_with("\n\n---\n\nread it\n\n---\n\nbe kind"), "{content}");
    assert_eq!(
        chats[1]["messages"].as_array().unwrap()[..],
        [
            first[0].clone(),
            json!({"role": "assistant", "content": CALL}),
            json!({"role": "user", "content": "Tool: read_file\n\nResult:\nA\n\n---\n\nand?"}),
        ]
    );
}

#[test]
fn a_call_in_both_forms_counts_once() {
    let both = Reply::text(CALL).then_calls([("read_file", json!({"path": "a"}))]);
    let fake = FakeLlama::start([both]);
    let (turn, deltas) = ask(&connect(&fake.url(), TIMING), &with_tool());
    let turn = turn.unwrap();
    assert_eq!((turn.calls.len(), turn.calls[0].id.as_str(), text(&deltas).as_str()), (1, "call_0", ""));
}

#[test]
fn without_tools_a_tag_is_text() {
    let fake = FakeLlama::start([Reply::text(CALL)]);
    let (turn, deltas) = ask(&connect(&fake.url(), TIMING), &prompt("show me"));
    let turn = turn.unwrap();
    assert_eq!((turn.content.as_str(), turn.calls.len(), text(&deltas).as_str()), (CALL, 0, CALL));
}

#[test]
fn a_flood_of_calls_is_refused() {
    let fake = FakeLlama::start([Reply::text(&CALL.repeat(100))]);
    let error = ask(&connect(&fake.url(), TIMING), &with_tool()).0.unwrap_err();
    assert!(error.to_string().contains("more than 64 tool calls"), "{error}");
}

#[test]
fn only_llama_cpp_supports_forced_calls() {
    for llama in [true, false] {
        let fake = FakeLlama::with(Setup { llama, ..Setup::default() }, []);
        assert_eq!(connect(&fake.url(), TIMING).capabilities().forced_tool, llama);
    }
}
