//! Conversations as token ids.

use super::{Role, shortened_result, shown_request};

/// Ids below are bytes; these follow.
pub const USER: u16 = 256;
pub const ASSISTANT: u16 = 257;
pub const TOOL: u16 = 258;
pub const END: u16 = 259;

const MARKS: [&str; 4] = ["<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"];

/// Token ids, and which of them the model is to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    pub ids: Vec<u16>,
    /// As long as `ids`: the assistant's bytes and the end after them, but no call in another's spelling.
    pub said: Vec<bool>,
}

/// A whole conversation as the model sees it, shortened where it is long.
pub fn encode(conversation: &[(Role, String)]) -> Encoded {
    let mut encoded = Encoded::default();
    for (role, text) in conversation {
        let (mark, text) = match role {
            Role::User => (USER, plain(&shown_request(text))),
            Role::Assistant => (ASSISTANT, plain(text)),
            Role::Tool => (TOOL, plain(&shortened_result(text))),
        };
        encoded.ids.push(mark);
        encoded.ids.extend(text.bytes().map(u16::from));
        encoded.ids.push(END);
        encoded.said.push(false);
        let own = *role == Role::Assistant && !is_respelled(&text);
        encoded.said.resize(encoded.ids.len(), own);
    }
    encoded
}

/// A conversation that the assistant goes on with.
pub fn prompt(conversation: &[(Role, String)]) -> Vec<u16> {
    let mut ids = encode(conversation).ids;
    ids.push(ASSISTANT);
    ids
}

/// Returns true if a call has no space after the name of its first argument.
fn is_respelled(text: &str) -> bool {
    let Some((_, arguments)) =
        text.split_once("</tool_call>").and_then(|(call, _)| call.split_once("\"arguments\": {\""))
    else {
        return false;
    };
    arguments.split_once("\":").is_some_and(|(_, value)| !value.starts_with(' '))
}

/// Text that cannot be taken for a mark.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in MARKS {
        text = text.replace(mark, &mark.replace("<|", "< |"));
    }
    text
}
