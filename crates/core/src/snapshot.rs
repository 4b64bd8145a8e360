//! Token counts of the messages in the context window.

use super::Role;

/// The origin of a message in the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    System,
    /// An earlier run, from the session file.
    History,
    /// The current run.
    Memory,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::History => "history",
            Self::Memory => "memory",
        }
    }
}

/// The tokens of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageStats {
    pub role: Role,
    pub tokens: u32,
    pub source: Source,
}

/// Token usage after a turn, in model tokens.
///
/// `total = system + tools + history + memory`, and `remaining = context_size - total`, which is negative if they do not
/// fit. `messages` has one entry for each message, the system text first.
///
/// Source: gRPC seed, "ContextSnapshot".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextSnapshot {
    pub context_size: u32,
    pub system_tokens: u32,
    pub tool_tokens: u32,
    pub history_tokens: u32,
    pub memory_tokens: u32,
    /// The maximum for the history when it was loaded.
    pub history_budget: u32,
    pub messages: Vec<MessageStats>,
    /// Tokens of the prompt, as the server counted them.
    pub prompt_tokens: Option<u32>,
    /// The number of those prompt tokens that the server took from its cache.
    pub cached_tokens: Option<u32>,
    /// Tokens of the answer, as the server counted them.
    pub answer_tokens: Option<u32>,
}

impl ContextSnapshot {
    pub fn total_tokens(&self) -> u32 {
        self.system_tokens + self.tool_tokens + self.history_tokens + self.memory_tokens
    }

    pub fn remaining_tokens(&self) -> i64 {
        i64::from(self.context_size) - i64::from(self.total_tokens())
    }

    pub fn count(&self, source: Source) -> usize {
        self.messages.iter().filter(|stats| stats.source == source).count()
    }
}
