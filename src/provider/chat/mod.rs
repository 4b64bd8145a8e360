//! Conversations in the form that models expect: messages and tools in OpenAI's format, and calls in plain text.

mod call_text;
pub(super) mod messages;
pub(super) mod prompted;

pub(super) use kontekst_engine::chat as openai_types;

/// The largest number of calls in one answer.
pub(super) const CALL_LIMIT: usize = 64;

/// The longest arguments of one call in bytes: 1 MiB.
pub(super) const ARGUMENTS_LIMIT: usize = 1024 * 1024;
