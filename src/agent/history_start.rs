//! Where the history of a long session starts, so that it starts there again next time.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Mutex, PoisonError},
};

use crate::{
    core::{Message, Role, SessionId},
    sessions::Tail,
};

/// Sessions that are remembered; one more and all are forgotten.
const REMEMBERED: usize = 256;

/// The first message that the model was last shown of each session.
///
/// A session that has outgrown its budget would lose a message at the front in every run, and with it
/// the server's whole cache. So the front moves rarely, and then by a large step. Only memory: after a
/// restart of the daemon the server's cache is gone too.
#[derive(Default)]
pub(super) struct HistoryStarts {
    first: Mutex<HashMap<SessionId, u64>>,
}

impl HistoryStarts {
    /// The part of `tail` to show: all of it while the session fits, else from where it started last
    /// time, else its newest part of at most 70 % of `budget`.
    pub(super) fn cut(&self, session: &SessionId, tail: Tail, budget: u32) -> Vec<Message> {
        let mut messages = tail.messages;
        if !tail.has_older {
            return messages;
        }
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let known = first.get(session).and_then(|mark| messages.iter().position(|m| fingerprint(m) == *mark));
        messages.drain(..known.unwrap_or_else(|| step(&messages, budget / 10 * 7)));
        if let (None, Some(message)) = (known, messages.first()) {
            if first.len() >= REMEMBERED {
                first.clear();
            }
            first.insert(session.clone(), fingerprint(message));
        }
        messages
    }
}

/// How many messages have to leave for the rest to fit `goal` and start with a user's; none when no
/// such start is left.
fn step(messages: &[Message], goal: u32) -> usize {
    let mut left: u64 = messages.iter().map(|message| u64::from(message.tokens)).sum();
    for (at, message) in messages.iter().enumerate() {
        if left <= u64::from(goal) && message.role == Role::User {
            return at;
        }
        left -= u64::from(message.tokens);
    }
    0
}

fn fingerprint(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    (message.role.as_str(), &message.content, message.at, &message.run).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(exchanges: u64) -> Vec<Message> {
        let say = |role, at| Message { tokens: 50, at: Some(at), ..Message::text(role, "x") };
        (0..exchanges).flat_map(|n| [say(Role::User, 2 * n), say(Role::Assistant, 2 * n + 1)]).collect()
    }

    /// The newest messages that fit a budget of 1000, as the session file gives them.
    fn tail(messages: &[Message]) -> Tail {
        let from = messages.len().saturating_sub(20);
        Tail { messages: messages[from..].to_vec(), tokens: 1000, has_older: from > 0, damaged: 0 }
    }

    #[test]
    fn the_front_moves_rarely_and_by_a_large_step() {
        let (anchors, session) = (HistoryStarts::default(), SessionId::new());
        let all = conversation(40);
        let mut starts: Vec<Option<u64>> = (5..=40)
            .map(|exchanges| anchors.cut(&session, tail(&all[..exchanges * 2]), 1000)[0].at)
            .collect();
        starts.dedup();
        // Ten exchanges fit; thirty more move the front about every fourth time.
        assert!((6..=12).contains(&starts.len()), "{starts:?}");
        assert!(starts.is_sorted());
    }

    #[test]
    fn what_fits_is_shown_whole_and_a_large_message_does_not_empty_it() {
        let (anchors, session) = (HistoryStarts::default(), SessionId::new());
        assert_eq!(anchors.cut(&session, tail(&conversation(3)), 1000).len(), 6);
        let large = Message { tokens: 900, ..Message::text(Role::User, "large") };
        let tail = Tail { messages: vec![large], tokens: 900, has_older: true, damaged: 0 };
        assert_eq!(anchors.cut(&session, tail, 1000).len(), 1);
    }
}
