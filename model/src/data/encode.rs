//! Conversations as token ids.

use super::{Conversation, Role, shortened_request, shortened_result};

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
    /// As long as `ids`: the assistant's bytes and the end after them.
    pub said: Vec<bool>,
}

/// A whole conversation as the model sees it, shortened where it is long.
pub fn encode(conversation: &[(Role, String)]) -> Encoded {
    let mut encoded = Encoded::default();
    for (role, text) in conversation {
        let (mark, text) = match role {
            Role::User => (USER, plain(&shortened_request(text))),
            Role::Assistant => (ASSISTANT, plain(text)),
            Role::Tool => (TOOL, plain(&shortened_result(text))),
        };
        encoded.ids.push(mark);
        encoded.ids.extend(text.bytes().map(u16::from));
        encoded.ids.push(END);
        encoded.said.push(false);
        encoded.said.resize(encoded.ids.len(), *role == Role::Assistant);
    }
    encoded
}

/// A conversation that the assistant goes on with.
pub fn prompt(conversation: &Conversation) -> Vec<u16> {
    let mut ids = encode(conversation).ids;
    ids.push(ASSISTANT);
    ids
}

/// Text that cannot be taken for a mark.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in MARKS {
        text = text.replace(mark, &mark.replace("<|", "< |"));
    }
    text
}
