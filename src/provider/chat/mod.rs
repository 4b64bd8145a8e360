//! A conversation as models are sent it: messages and tools in OpenAI's form, and calls in plain text.

pub mod messages;
pub mod openai_types;
pub mod prompted;

/// Calls that one answer may make.
pub const CALL_LIMIT: usize = 64;

/// Bytes that the arguments of one call may have: 1 MiB.
pub const ARGUMENTS_LIMIT: usize = 1024 * 1024;
