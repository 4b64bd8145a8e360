//! Conversations in the form that models expect: messages and tools in OpenAI's format, and calls in plain text.

mod call_text;
pub mod messages;
pub mod prompted;

pub use kontekst_engine::chat as openai_types;

/// The largest number of calls in one answer.
pub const CALL_LIMIT: usize = 64;

/// The longest arguments of one call in bytes: 1 MiB.
pub const ARGUMENTS_LIMIT: usize = 1024 * 1024;
