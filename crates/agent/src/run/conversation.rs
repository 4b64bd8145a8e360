//! A conversation that is only kept in memory.

use std::sync::Arc;

use kontekst_core::{Message, Mutex, RunId, SessionId};

/// A conversation of several runs that is only kept in memory. All clones share the same messages.
///
/// A run reads the messages when it starts. When it ends, it replaces them with what the model's window then
/// holds, so the conversation never becomes larger than that window.
#[derive(Clone, Debug)]
pub struct Conversation {
    id: SessionId,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Conversation {
    /// Starts a conversation with the messages so far, oldest first.
    pub fn new(id: SessionId, messages: Vec<Message>) -> Self {
        Self { id, messages: Arc::new(Mutex::new(messages)) }
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the messages so far, oldest first.
    pub fn messages(&self) -> Vec<Message> {
        self.messages.lock().clone()
    }

    /// Returns true if the last message comes from this run.
    pub fn ends_with(&self, run: &RunId) -> bool {
        self.messages.lock().last().is_some_and(|message| message.run.as_ref() == Some(run))
    }

    pub fn push(&self, message: Message) {
        self.messages.lock().push(message);
    }

    /// Replaces all messages.
    pub(crate) fn replace(&self, messages: Vec<Message>) {
        *self.messages.lock() = messages;
    }
}
