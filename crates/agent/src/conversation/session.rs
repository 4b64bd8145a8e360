//! The parts of a session that a run needs: the exclusive right to it, where its history starts, and its messages if
//! they are only in memory.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Weak},
};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use kontekst_core::{Message, Mutex, Role, SessionId};
use kontekst_store::sessions::Tail;

use crate::run::{Conversation, History, Prompt, StartRun};

/// The number of sessions of which something is remembered. When one more is added, all are forgotten.
const MAX_REMEMBERED: usize = 1024;
/// The number of locks that are kept before unused ones are removed.
const MAX_IDLE_LOCKS: usize = 64;

/// The daemon's knowledge of sessions, which is kept in memory only.
#[derive(Default)]
pub(crate) struct OpenSessions {
    pub(crate) locks: SessionLocks,
    /// The fingerprint of the message at which the history of each long session last started.
    ///
    /// A session that is larger than its token budget would lose its oldest message in every run, and with it the
    /// whole prompt cache of the server. Therefore the start moves rarely, and then by a large step. It need not be
    /// stored, because the server's cache is lost with the daemon, too.
    history_starts: Remembered<u64>,
    /// The number of lines that cannot be read, as it was last said.
    damage: Remembered<usize>,
    /// The notices about its model that the session has shown last.
    model_notices: Remembered<Vec<String>>,
}

/// Something that is remembered of sessions.
#[derive(Default)]
struct Remembered<T>(Mutex<HashMap<SessionId, T>>);

impl<T: Clone> Remembered<T> {
    fn get(&self, session: &SessionId) -> Option<T> {
        self.0.lock().get(session).cloned()
    }

    fn set(&self, session: &SessionId, value: T) {
        let mut all = self.0.lock();
        if all.len() >= MAX_REMEMBERED && !all.contains_key(session) {
            all.clear();
        }
        all.insert(session.clone(), value);
    }
}

impl OpenSessions {
    /// Returns those of the notices that the session has not shown in its last run, and remembers all of them. After a
    /// restart of the daemon they are shown again.
    pub(crate) fn unseen(&self, session: &SessionId, notices: Vec<String>) -> Vec<String> {
        let before = self.model_notices.get(session).unwrap_or_default();
        let unseen = notices.iter().filter(|notice| !before.contains(notice)).cloned().collect();
        if !notices.is_empty() || !before.is_empty() {
            self.model_notices.set(session, notices);
        }
        unseen
    }

    /// Notes the number of lines that cannot be read, and returns true if there are more than were said.
    pub(crate) fn is_new_damage(&self, session: &SessionId, lines: usize) -> bool {
        let is_new = lines > self.damage.get(session).unwrap_or(0);
        if is_new {
            self.damage.set(session, lines);
        }
        is_new
    }

    /// Returns the part of `tail` that the model reads: all of it if the whole session fits, otherwise the
    /// part from the last start on, otherwise the newest messages that take at most 70 % of `budget` tokens.
    pub(crate) fn trim(&self, session: &SessionId, tail: Tail, budget: u32) -> Vec<Message> {
        let mut messages = tail.messages;
        if !tail.has_older {
            return messages;
        }
        let known = self.history_starts.get(session);
        let known = known.and_then(|known| messages.iter().position(|message| fingerprint(message) == known));
        messages.drain(..known.unwrap_or_else(|| messages_to_drop(&messages, budget / 10 * 7)));
        if let (None, Some(message)) = (known, messages.first()) {
            self.history_starts.set(session, fingerprint(message));
        }
        messages
    }
}

/// Lets one run at a time use a session, in the order in which the runs came.
#[derive(Default)]
pub(crate) struct SessionLocks {
    locks: Mutex<HashMap<SessionId, Weak<AsyncMutex<()>>>>,
}

/// The exclusive right to use one session.
pub(crate) struct SessionGuard {
    _guard: OwnedMutexGuard<()>,
}

/// A session that another run uses.
pub(crate) struct BusySession {
    lock: Arc<AsyncMutex<()>>,
}

/// The session of a run.
pub(crate) struct SessionSlot {
    /// The session's id. A conversation that is not stored has an id of its own, too.
    pub(crate) id: SessionId,
    /// `None` for a conversation that is not stored.
    pub(crate) guard: Option<SessionGuard>,
}

impl SessionLocks {
    /// Locks the session unless another run uses it.
    pub(crate) fn try_lock(&self, id: &SessionId) -> Result<SessionGuard, BusySession> {
        let mut locks = self.locks.lock();
        if locks.len() > MAX_IDLE_LOCKS {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = locks.get(id).and_then(Weak::upgrade).unwrap_or_else(|| {
            let lock = Arc::new(AsyncMutex::new(()));
            locks.insert(id.clone(), Arc::downgrade(&lock));
            lock
        });
        match Arc::clone(&lock).try_lock_owned() {
            Ok(guard) => Ok(SessionGuard { _guard: guard }),
            Err(_) => Err(BusySession { lock }),
        }
    }
}

impl BusySession {
    /// Waits until the runs that came before have ended.
    pub(crate) async fn lock(self) -> SessionGuard {
        SessionGuard { _guard: self.lock.lock_owned().await }
    }
}

/// Returns how many of the oldest messages must be dropped so that the rest takes at most `goal` tokens and
/// starts with a user message. Returns 0 if there is no such start.
fn messages_to_drop(messages: &[Message], goal: u32) -> usize {
    let mut remaining: u64 = messages.iter().map(|message| u64::from(message.tokens)).sum();
    for (index, message) in messages.iter().enumerate() {
        if remaining <= u64::from(goal) && message.role == Role::User {
            return index;
        }
        remaining -= u64::from(message.tokens);
    }
    0
}

fn fingerprint(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    (message.role.as_str(), &message.content, message.at, &message.run).hash(&mut hasher);
    hasher.finish()
}

/// Updates the in-memory conversation of a run, if it has one, when the run ends.
pub(crate) struct ConversationUpdate {
    conversation: Option<Conversation>,
    /// The prompt as the user typed it.
    prompt: String,
}

impl ConversationUpdate {
    pub(crate) fn new(request: &StartRun) -> Self {
        let History::InMemory(conversation) = &request.history else {
            return Self { conversation: None, prompt: String::new() };
        };
        let prompt = match &request.prompt {
            Prompt::Text(text) => text.clone(),
            Prompt::Skill { name, arguments, .. } => format!("/{name} {arguments}"),
        };
        Self { conversation: Some(conversation.clone()), prompt }
    }

    /// Keeps the prompt of a run that was cancelled before it started.
    pub(crate) fn keep_prompt(self) {
        if let Some(conversation) = self.conversation.filter(|_| !self.prompt.trim().is_empty()) {
            conversation.push(Message::text(Role::User, self.prompt));
        }
    }

    pub(crate) fn replace(self, messages: Vec<Message>) {
        if let Some(conversation) = self.conversation {
            conversation.replace(messages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn runs_of_one_session_run_one_at_a_time_and_in_order() {
        let locks = SessionLocks::default();
        let (a, b): (SessionId, SessionId) = ("a".parse().unwrap(), "b".parse().unwrap());
        let first = locks.try_lock(&a).ok().unwrap();
        assert!(locks.try_lock(&b).is_ok());
        let busy = locks.try_lock(&a).err().unwrap();
        drop(first);
        let second = busy.lock().await;
        assert!(locks.try_lock(&a).is_err());
        drop(second);
        assert!(locks.try_lock(&a).is_ok());
    }

    fn exchanges(count: u64) -> Vec<Message> {
        let message = |role, at| Message { tokens: 50, at: Some(at), ..Message::text(role, "x") };
        (0..count).flat_map(|n| [message(Role::User, 2 * n), message(Role::Assistant, 2 * n + 1)]).collect()
    }

    /// Returns the newest messages that fit a budget of 1000 tokens, as the session file returns them.
    fn tail(messages: &[Message]) -> Tail {
        let from = messages.len().saturating_sub(20);
        Tail { messages: messages[from..].to_vec(), tokens: 1000, has_older: from > 0, damaged: 0 }
    }

    #[test]
    fn the_start_of_a_long_history_moves_rarely_and_by_a_large_step() {
        let (starts, session) = (OpenSessions::default(), SessionId::new());
        let all = exchanges(40);
        let mut first_times: Vec<Option<u64>> =
            (5..=40).map(|count| starts.trim(&session, tail(&all[..count * 2]), 1000)[0].at).collect();
        first_times.dedup();
        // Ten exchanges fit. The thirty others move the start about every fourth time.
        assert!((6..=12).contains(&first_times.len()), "{first_times:?}");
        assert!(first_times.is_sorted());
    }

    #[test]
    fn a_history_that_fits_is_kept_whole_and_one_large_message_is_not_dropped() {
        let (starts, session) = (OpenSessions::default(), SessionId::new());
        assert_eq!(starts.trim(&session, tail(&exchanges(3)), 1000).len(), 6);
        let large = Message { tokens: 900, ..Message::text(Role::User, "large") };
        let tail = Tail { messages: vec![large], tokens: 900, has_older: true, damaged: 0 };
        assert_eq!(starts.trim(&session, tail, 1000).len(), 1);
    }
}
