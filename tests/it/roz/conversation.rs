//! Histories that clients bring, windows that they request, and conversations that outgrow them.

use kontekst_core::Role;
use kontekst_pb::roz::{
    ContentPart, ConversationMessage, StartSession, TextContent, ToolResultContent, ToolUseContent,
    content_part::Part, session_request::Request, session_response::Response,
};

use super::{TestDaemon, frame_names, stop_reason};
use crate::agent_core::scripted_provider::Step;

fn message(role: &str, parts: impl IntoIterator<Item = Part>) -> ConversationMessage {
    let parts = parts.into_iter().map(|part| ContentPart { part: Some(part) }).collect();
    ConversationMessage { role: role.to_owned(), parts }
}

fn text(text: &str) -> Part {
    Part::Text(TextContent { text: text.to_owned() })
}

#[tokio::test]
async fn a_session_can_continue_a_history() {
    let daemon = TestDaemon::new([Step::Say("of course")]);
    let mut client = daemon.open().await;
    let call = ToolUseContent { id: "c".to_owned(), name: "look".to_owned(), input: None };
    let result = ToolResultContent {
        tool_use_id: "c".to_owned(),
        name: "look".to_owned(),
        content: "a tree".to_owned(),
        is_error: false,
    };
    let history = vec![
        message("user", [text("what is there?")]),
        message("assistant", [text("I look"), Part::ToolUse(call)]),
        message("user", [Part::ToolResult(result)]),
        message("assistant", [text("a tree")]),
    ];
    client.send(Request::Start(StartSession { history, ..StartSession::default() })).await;
    client.send_message("sure?").await;
    let frames = client.frames_until(|frame| matches!(frame, Response::TurnComplete(_))).await;
    assert_eq!(stop_reason(&frames), "end_turn");
    let messages = &daemon.model.requests()[0].messages;
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]);
    assert_eq!(messages[1].tool_calls[0].arguments, "{}");
    assert!(messages[..4].iter().all(|message| message.tokens > 0), "counted");
}

#[tokio::test]
async fn a_requested_window_is_limited_by_the_model() {
    for (asked, size) in [(Some(8_000), 8_000), (Some(1_000_000), 16_384), (Some(0), 16_384), (None, 16_384)]
    {
        let daemon = TestDaemon::new([super::call_step("bash", serde_json::json!({})), Step::Say("ok")]);
        tokio::time::pause();
        let mut client = daemon.open().await;
        let tools = vec![super::sequential_tool("bash")];
        client
            .send(Request::Start(StartSession {
                max_context_tokens: asked,
                tools,
                ..StartSession::default()
            }))
            .await;
        client.send_message("go").await;
        let seen = client.frames_until(|frame| matches!(frame, Response::Keepalive(_))).await;
        let Some(Response::Keepalive(alive)) = seen.last() else { unreachable!() };
        assert_eq!(alive.tokens_max, Some(size), "{asked:?}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_conversation_that_outgrows_its_window_is_summarised_and_reported() {
    let daemon = TestDaemon::new([Step::Say("long"), Step::Say("they talked"), Step::Say("on")]);
    let mut client = daemon.open().await;
    let history = vec![message("user", [text(&"word ".repeat(2200))]), message("assistant", [text("fine")])];
    let start = StartSession { history, max_context_tokens: Some(4096), ..StartSession::default() };
    client.send(Request::Start(start)).await;
    client.send_message("go on").await;
    let frames = client.frames_until(|frame| matches!(frame, Response::TurnComplete(_))).await;
    let compacted = frames.iter().find_map(|frame| match frame {
        Response::ContextCompacted(compacted) => Some(compacted),
        _ => None,
    });
    let compacted = compacted.unwrap_or_else(|| panic!("{:?}", frame_names(&frames)));
    assert_eq!((compacted.level.as_str(), compacted.messages_before), ("summary", 2));
    assert!(compacted.tokens_before > compacted.tokens_after, "{compacted:?}");
    // The session continues with the summary in place of the old messages.
    client.send_message("and on").await;
    client.frames_until(|frame| matches!(frame, Response::TurnComplete(_))).await;
    assert!(!daemon.prompt(2).contains("word word"), "{}", daemon.prompt(2));
}
