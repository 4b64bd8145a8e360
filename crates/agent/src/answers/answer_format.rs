//! The request for an answer in a format, for a small model.

use kontekst_core::{Message, Role};
use kontekst_provider::ChatRequest;

const WRITE_IT: &str = "Now write this answer in the format that was asked for.";

/// Leaves out the tools and the form of calls, and adds what the model answered without the format. A small model that sees
/// calls begins one within the format: its first key is `name` in most templates, and so it is in many formats.
pub(crate) fn ask_without_calls(request: &mut ChatRequest, draft: &str) {
    request.tools = [].into();
    let messages = std::mem::take(&mut request.messages);
    request.messages = messages.into_iter().filter_map(in_words).collect();
    if !draft.trim().is_empty() {
        request.messages.push(Message::text(Role::Assistant, draft));
        request.messages.push(Message::text(Role::User, WRITE_IT));
    }
}

/// Returns a message without calls. A result becomes a text of the user.
fn in_words(message: Message) -> Option<Message> {
    match &message.tool_result {
        Some(result) => {
            Some(Message::text(Role::User, format!("Result of {}:\n{}", result.name, result.output)))
        }
        None if message.tool_calls.is_empty() => Some(message),
        None if message.content.trim().is_empty() => None,
        None => Some(Message { tool_calls: Vec::new(), ..message }),
    }
}
