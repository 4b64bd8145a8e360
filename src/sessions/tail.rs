//! The newest part of a conversation that fits a budget.

use std::{collections::HashSet, io};

use super::{
    backward::{Backward, RawLine, ReadAt},
    history_repair,
    record::{MAX_LINE, SessionLine},
};
use crate::core::{Message, Role};

/// What of a conversation a model is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    /// Oldest first. Empty, or the first is a user's and every tool call has its result.
    pub messages: Vec<Message>,
    /// What the messages cost, at most the budget.
    pub tokens: u32,
    /// Whether there are older messages that were left out.
    pub has_older: bool,
    /// Lines that were met on the way and could not be understood.
    pub damaged: usize,
}

/// Longest line that can fit a budget. No token is longer than 128 bytes in the vocabularies of the
/// models at hand, and JSON makes at most four of one byte but for control characters.
fn longest_line(budget: u32) -> usize {
    (budget as usize).saturating_mul(512).saturating_add(64 * 1024).min(MAX_LINE)
}

pub(super) fn load(
    len: u64,
    read: &ReadAt<'_>,
    budget: u32,
    estimate: &dyn Fn(&Message) -> u32,
) -> io::Result<Tail> {
    let mut lines = Backward::new(len, read, longest_line(budget));
    let mut tail = Tail::default();
    let mut started = HashSet::new();
    while let Some(piece) = lines.next()? {
        let line = match piece {
            RawLine::Whole(bytes) => SessionLine::parse(bytes),
            RawLine::TooLong { bytes, has_nul: nul } if nul || bytes > MAX_LINE as u64 => {
                SessionLine::Damaged
            }
            RawLine::TooLong { .. } => {
                tail.has_older = true;
                break;
            }
        };
        match line {
            SessionLine::Nothing => {}
            SessionLine::Damaged => tail.damaged += 1,
            SessionLine::ToolStarted(call) => {
                started.insert(call);
            }
            // What came before is in the summary, if that fits.
            SessionLine::Compacted { summary, tokens } => {
                let summary = summary_messages(&summary, tokens, estimate);
                let cost: u32 = summary.iter().map(|message| message.tokens).sum();
                match tail.tokens.checked_add(cost).filter(|tokens| *tokens <= budget) {
                    Some(tokens) => {
                        tail.tokens = tokens;
                        tail.messages.extend(summary.into_iter().rev());
                    }
                    None => tail.has_older = true,
                }
                break;
            }
            // The system text is the agent's, not the conversation's.
            SessionLine::Message(message) if message.role == Role::System => {}
            SessionLine::Message(mut message) => {
                ensure_token_count(&mut message, estimate);
                match tail.tokens.checked_add(message.tokens).filter(|tokens| *tokens <= budget) {
                    Some(tokens) => tail.tokens = tokens,
                    None => {
                        tail.has_older = true;
                        break;
                    }
                }
                tail.messages.push(message);
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

/// A summary as a conversation carries it: the user reminds, the assistant takes note.
pub fn summary_messages(summary: &str, tokens: u32, estimate: &dyn Fn(&Message) -> u32) -> [Message; 2] {
    let mut reminder =
        Message::text(Role::User, format!("This is what we have talked about so far:\n\n{summary}"));
    reminder.tokens = if tokens == 0 { estimate(&reminder) } else { tokens + 12 };
    let mut noted = Message::text(Role::Assistant, "Noted.");
    noted.tokens = 4;
    [reminder, noted]
}

/// Sees to it that `tokens` is what the message costs.
fn ensure_token_count(message: &mut Message, estimate: &dyn Fn(&Message) -> u32) {
    if message.tokens == 0 {
        // At least 1, so that a file of uncounted empty messages cannot make the cost follow the file.
        message.tokens = estimate(message).max(1);
    }
}

/// Drops from the front until a user speaks first and the rest fits: results made up for calls that
/// have none cost tokens as well.
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
