//! Histories that clients bring, windows they ask for, and conversations that outgrow them.

use kontekst::{
    core::Role,
    pb::roz::{
        ContentPart, ConversationMessage, StartSession, TextContent, ToolResultContent, ToolUseContent,
        content_part::Part, session_request::Request, session_response::Response,
    },
};

use super::{Room, names, stop};
use crate::core::scripted::Step;

fn message(role: &str, parts: impl IntoIterator<Item = Part>) -> ConversationMessage {
    let parts = parts.into_iter().map(|part| ContentPart { part: Some(part) }).collect();
    ConversationMessage { role: role.to_owned(), parts }
}

fn text(text: &str) -> Part {
    Part::Text(TextContent { text: text.to_owned() })
}

#[tokio::test]
async fn a_history_goes_on_where_it_was() {
    let room = Room::new([Step::Say("of course")]);
    let mut talk = room.open().await;
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
    talk.say(Request::Start(StartSession { history, ..StartSession::default() })).await;
    talk.ask("sure?").await;
    let frames = talk.until(|frame| matches!(frame, Response::TurnComplete(_))).await;
    assert_eq!(stop(&frames), "end_turn");
    let messages = &room.model.requests()[0].messages;
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]);
    assert_eq!(messages[1].tool_calls[0].arguments, "{}");
    assert!(messages[..4].iter().all(|message| message.tokens > 0), "counted");
}

#[tokio::test]
async fn a_window_is_what_was_asked_for_and_no_more_than_there_is() {
    for (asked, size) in [(Some(8_000), 8_000), (Some(1_000_000), 16_384), (Some(0), 16_384), (None, 16_384)]
    {
        let room = Room::new([super::call("bash", serde_json::json!({})), Step::Say("ok")]);
        tokio::time::pause();
        let mut talk = room.open().await;
        let tools = vec![super::single("bash")];
        talk.say(Request::Start(StartSession {
            max_context_tokens: asked,
            tools,
            ..StartSession::default()
        }))
        .await;
        talk.ask("go").await;
        let seen = talk.until(|frame| matches!(frame, Response::Keepalive(_))).await;
        let Some(Response::Keepalive(alive)) = seen.last() else { unreachable!() };
        assert_eq!(alive.tokens_max, Some(size), "{asked:?}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_conversation_that_outgrows_its_window_is_summarised_and_that_is_told() {
    let room = Room::new([Step::Say("long"), Step::Say("they talked"), Step::Say("on")]);
    let mut talk = room.open().await;
    let history = vec![message("user", [text(&"word ".repeat(2200))]), message("assistant", [text("fine")])];
    let start = StartSession { history, max_context_tokens: Some(4096), ..StartSession::default() };
    talk.say(Request::Start(start)).await;
    talk.ask("go on").await;
    let frames = talk.until(|frame| matches!(frame, Response::TurnComplete(_))).await;
    let compacted = frames.iter().find_map(|frame| match frame {
        Response::ContextCompacted(compacted) => Some(compacted),
        _ => None,
    });
    let compacted = compacted.unwrap_or_else(|| panic!("{:?}", names(&frames)));
    assert_eq!((compacted.level.as_str(), compacted.messages_before), ("summary", 2));
    assert!(compacted.tokens_before > compacted.tokens_after, "{compacted:?}");
    // The conversation of the session is what the summary left.
    talk.ask("and on").await;
    talk.until(|frame| matches!(frame, Response::TurnComplete(_))).await;
    assert!(!room.prompt(2).contains("word word"), "{}", room.prompt(2));
}
