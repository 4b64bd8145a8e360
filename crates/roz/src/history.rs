//! Reads the history that a client sends with its session's start. Pure.

use kontekst_core::{CallId, Message, Role, ToolCall, ToolResult};
use kontekst_pb::roz::{ContentPart, ConversationMessage, content_part::Part};

use super::structs;

/// The most messages that a history may have.
pub(super) const MAX_MESSAGES: usize = 10_000;

/// Converts a client's history to messages of the agent core.
///
/// Messages of an unknown role and empty parts are left out. Models here cannot see images, so an image is replaced
/// by a note about it.
pub(super) fn messages(history: Vec<ConversationMessage>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::with_capacity(history.len());
    for ConversationMessage { role, parts } in history {
        let role = match role.as_str() {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => continue,
        };
        let message = Parts::read(parts, &messages);
        message.append_to(role, &mut messages);
    }
    // Most chat templates require that the user speaks first.
    let first = messages.iter().find(|message| message.role != Role::System);
    if first.is_some_and(|message| message.role != Role::User) {
        messages.insert(0, Message::text(Role::User, "[the beginning of this conversation is not known]"));
    }
    messages
}

/// The parts of one message, sorted by what they become.
#[derive(Default)]
struct Parts {
    text: Vec<String>,
    thinking: String,
    calls: Vec<ToolCall>,
    results: Vec<ToolResult>,
}

impl Parts {
    /// Sorts the parts of a message. `before` are the messages before it.
    fn read(parts: Vec<ContentPart>, before: &[Message]) -> Self {
        let mut sorted = Self::default();
        for part in parts.into_iter().filter_map(|part| part.part) {
            match part {
                Part::Text(text) if !text.text.is_empty() => sorted.text.push(text.text),
                Part::Text(_) => {}
                Part::Thinking(thinking) => sorted.thinking.push_str(&thinking.thinking),
                Part::Image(image) => {
                    let (kind, bytes) = (printable_media_type(&image.media_type), image.data.len());
                    sorted.text.push(format!("[an image, {kind}, {bytes} bytes, not shown]"));
                }
                Part::ToolUse(call) => {
                    let input = call.input.map(structs::to_json).unwrap_or_default();
                    sorted.calls.push(ToolCall {
                        id: CallId::new(call.id),
                        name: call.name,
                        arguments: serde_json::Value::Object(input).to_string(),
                    });
                }
                Part::ToolResult(result) => {
                    let call_id = CallId::new(result.tool_use_id);
                    let name = if result.name.is_empty() { tool_name(&call_id, before) } else { result.name };
                    let (output, is_error) = (result.content, result.is_error);
                    sorted.results.push(ToolResult { call_id, name, output, is_error });
                }
            }
        }
        sorted
    }

    /// Appends what the parts become: a message for each result, and one for the rest unless it is empty.
    fn append_to(self, role: Role, messages: &mut Vec<Message>) {
        let Self { text, thinking, calls, results } = self;
        // The results come first, because they answer the calls of the message before this one.
        messages.extend(results.into_iter().map(Message::result));
        let content = text.join("\n\n");
        if role == Role::Assistant {
            if !(content.is_empty() && calls.is_empty() && thinking.is_empty()) {
                let message = Message::text(role, content);
                messages.push(Message { tool_calls: calls, reasoning: thinking, ..message });
            }
        } else if !content.is_empty() {
            messages.push(Message::text(role, content));
        }
    }
}

/// Returns the name of the tool that an earlier message called under this id.
fn tool_name(id: &CallId, before: &[Message]) -> String {
    let call = before.iter().rev().flat_map(|message| &message.tool_calls).find(|call| call.id == *id);
    call.map_or_else(|| "tool".to_owned(), |call| call.name.clone())
}

/// Returns a media type without the characters that do not belong in one, for the model to read.
pub(super) fn printable_media_type(media_type: &str) -> String {
    let allowed = |c: &char| c.is_ascii_alphanumeric() || "/+.-".contains(*c);
    media_type.chars().filter(allowed).take(64).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use kontekst_pb::roz::{ImageContent, TextContent, ThinkingContent, ToolResultContent, ToolUseContent};

    use super::*;

    fn message(role: &str, parts: impl IntoIterator<Item = Part>) -> ConversationMessage {
        let parts = parts.into_iter().map(|part| ContentPart { part: Some(part) }).collect();
        ConversationMessage { role: role.to_owned(), parts }
    }

    fn text(text: &str) -> Part {
        Part::Text(TextContent { text: text.to_owned() })
    }

    #[test]
    fn every_kind_of_part_is_converted() {
        let thinking =
            Part::Thinking(ThinkingContent { thinking: "hm".to_owned(), signature: "s".to_owned() });
        let call = Part::ToolUse(ToolUseContent {
            id: "c1".to_owned(),
            name: "look".to_owned(),
            input: Some(structs::from_json(json!({"n": 3}))),
        });
        let result = Part::ToolResult(ToolResultContent {
            tool_use_id: "c1".to_owned(),
            name: String::new(),
            content: "seen".to_owned(),
            is_error: true,
        });
        let image = Part::Image(ImageContent { media_type: "image/png".to_owned(), data: vec![0; 5] });
        let messages = messages(vec![
            message("system", [text("be brief")]),
            message("user", [text("look"), image]),
            message("assistant", [thinking, text("I do"), call]),
            message("user", [text("and?"), result]),
        ]);
        let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::User]);
        assert_eq!(messages[1].content, "look\n\n[an image, image/png, 5 bytes, not shown]");
        let answer = &messages[2];
        assert_eq!((answer.content.as_str(), answer.reasoning.as_str()), ("I do", "hm"));
        assert_eq!(answer.tool_calls[0].arguments, r#"{"n":3}"#);
        let result = messages[3].tool_result.as_ref().unwrap();
        assert_eq!((result.name.as_str(), result.output.as_str(), result.is_error), ("look", "seen", true));
        assert_eq!(messages[4].content, "and?");
    }

    #[test]
    fn empty_messages_and_unknown_roles_are_left_out() {
        let empty = ContentPart { part: None };
        let messages = messages(vec![
            message("robot", [text("beep")]),
            message("user", [text("")]),
            ConversationMessage { role: "user".to_owned(), parts: vec![empty] },
            message("assistant", [text("hello")]),
        ]);
        assert_eq!(messages.len(), 2, "a first message of the user is added: {messages:?}");
        assert_eq!((messages[0].role, messages[1].content.as_str()), (Role::User, "hello"));
    }
}
