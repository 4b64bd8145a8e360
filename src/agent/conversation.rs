//! A conversation that lives in memory, for as long as somebody holds it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::{Message, SessionId};

/// A conversation of several runs, one after another, that is stored nowhere. All clones are one.
///
/// A run reads it when it starts and leaves in it, when it ends, what the model's window then holds: so it
/// never outgrows that window.
#[derive(Clone, Debug)]
pub struct Conversation {
    id: SessionId,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Conversation {
    /// `messages` is what was said before, oldest first.
    pub fn new(id: SessionId, messages: Vec<Message>) -> Self {
        Self { id, messages: Arc::new(Mutex::new(messages)) }
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// What was said so far, oldest first.
    pub fn messages(&self) -> Vec<Message> {
        self.lock().clone()
    }

    pub fn push(&self, message: Message) {
        self.lock().push(message);
    }

    pub(super) fn replace(&self, messages: Vec<Message>) {
        *self.lock() = messages;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
