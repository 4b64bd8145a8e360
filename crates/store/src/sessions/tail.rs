//! Loads the newest part of a conversation that fits in a token budget.

use std::{collections::HashSet, io};

use kontekst_core::{IMAGE_TOKENS, Message, Role};

use super::{
    backward::{Backward, RawLine, ReadAt},
    history_repair,
    record::{MAX_LINE, SessionLine},
};

/// The part of a conversation that a model is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    /// The messages, oldest first. The first one is from the user, and every tool call has its result.
    pub messages: Vec<Message>,
    /// The number of tokens of the messages. It is at most the budget.
    pub tokens: u32,
    /// True if there are older messages that were left out.
    pub has_older: bool,
    /// The number of lines that were read and could not be parsed.
    pub damaged: usize,
}

/// The maximum number of tokens that a chat template or a model's reasoning may add to those of a message's text.
const MAX_OVERHEAD: u64 = 1024;

/// Returns the maximum length of a line that can fit in the budget, in bytes. The longest tokens of the
/// known vocabularies have 128 bytes, and JSON needs at most four bytes for one, except for control
/// characters.
fn longest_line(budget: u32) -> usize {
    (budget as usize).saturating_mul(512).saturating_add(64 * 1024).min(MAX_LINE)
}

/// Loads the newest messages that fit in `budget`, as [`super::SessionLog::tail`] describes. The file has
/// `len` bytes, which `read` returns.
pub(super) fn load(
    len: u64,
    read: &ReadAt<'_>,
    budget: u32,
    estimate: &dyn Fn(&Message) -> u32,
) -> io::Result<Tail> {
    let mut lines = Backward::new(len, read, longest_line(budget));
    let mut tail = Tail::default();
    let mut started = HashSet::new();
    while let Some(line) = lines.next()? {
        let line = match line {
            RawLine::Whole(bytes) => SessionLine::parse(bytes),
            RawLine::TooLong { bytes, has_nul } if has_nul || bytes > MAX_LINE as u64 => SessionLine::Damaged,
            RawLine::TooLong { .. } => {
                tail.has_older = true;
                break;
            }
        };
        match line {
            SessionLine::Unanswered(_) | SessionLine::Nothing => {}
            SessionLine::Damaged => tail.damaged += 1,
            SessionLine::ToolStarted { call, .. } => {
                started.insert(call);
            }
            // The summary replaces everything before it, if it fits in the budget.
            SessionLine::Compacted { summary, tokens } => {
                let tokens = if is_plausible(tokens, summary.len()) { tokens } else { 0 };
                let summary = summary_messages(&summary, tokens, estimate);
                tail.add(summary.into_iter().rev().collect(), budget);
                break;
            }
            // The system message belongs to the agent and not to the conversation.
            SessionLine::Message(message) if message.role == Role::System => {}
            SessionLine::Message(mut message) => {
                ensure_token_count(&mut message, estimate);
                if !tail.add(vec![message], budget) {
                    break;
                }
            }
        }
    }
    tail.messages.reverse();
    tail.messages = history_repair::repair_history(std::mem::take(&mut tail.messages), &started);
    for message in &mut tail.messages {
        ensure_token_count(message, estimate);
    }
    start_at_user(&mut tail, budget);
    Ok(tail)
}

impl Tail {
    /// Adds messages, newest first, if they all fit in the budget. Returns false if they do not fit.
    fn add(&mut self, messages: Vec<Message>, budget: u32) -> bool {
        let cost: u32 = messages.iter().map(|message| message.tokens).sum();
        match self.tokens.checked_add(cost).filter(|tokens| *tokens <= budget) {
            Some(tokens) => {
                self.tokens = tokens;
                self.messages.extend(messages);
                true
            }
            None => {
                self.has_older = true;
                false
            }
        }
    }
}

/// Returns the messages that stand for a summary in a conversation: one from the user that contains it,
/// and an acknowledgement from the assistant.
pub fn summary_messages(summary: &str, tokens: u32, estimate: &dyn Fn(&Message) -> u32) -> [Message; 2] {
    let mut reminder =
        Message::text(Role::User, format!("This is what we have talked about so far:\n\n{summary}"));
    reminder.tokens = if tokens == 0 { estimate(&reminder) } else { tokens.saturating_add(12) };
    let mut noted = Message::text(Role::Assistant, "Noted.");
    noted.tokens = 4;
    [reminder, noted]
}

/// Sets `tokens` of the message to an estimate if it is not known or cannot be true.
fn ensure_token_count(message: &mut Message, estimate: &dyn Fn(&Message) -> u32) {
    // An image can be several times as many tokens as it is taken for.
    let images = message.images.len().saturating_mul(8 * IMAGE_TOKENS as usize);
    if message.tokens == 0 || !is_plausible(message.tokens, message.text_bytes().saturating_add(images)) {
        // It is at least 1, so that a file full of empty messages is not read as a whole.
        message.tokens = estimate(message).max(1);
    }
}

/// Returns false for a count that is too high for a text of this size, for example in a damaged record. Such a
/// count would hide everything before the message. A token has at least one byte.
fn is_plausible(tokens: u32, bytes: usize) -> bool {
    u64::from(tokens) <= (bytes as u64).saturating_add(MAX_OVERHEAD)
}

/// Removes messages from the front until the first one is from the user and the rest fits in the budget.
/// It may no longer fit because placeholder results cost tokens as well.
fn start_at_user(tail: &mut Tail, budget: u32) {
    let mut total: u64 = tail.messages.iter().map(|message| u64::from(message.tokens)).sum();
    let mut first = 0;
    while let Some(message) = tail.messages.get(first)
        && (message.role != Role::User || total > u64::from(budget))
    {
        total -= u64::from(message.tokens);
        first += 1;
    }
    tail.has_older |= first > 0;
    tail.messages.drain(..first);
    tail.tokens = u32::try_from(total).expect("at most the budget");
}
