//! Conversations in the form that models expect: messages and tools in OpenAI's format, calls in plain text, and steps.

mod answer;
mod answer_parser;
mod thoughts;

mod call_text;
mod code_spans;
mod content_parts;
pub(super) mod messages;
mod parsed_call;
pub(super) mod prompted;
pub(super) mod steps;

pub(super) use answer::Answer;
pub(super) use answer_parser::AnswerParser;
pub(super) use parsed_call::ParsedCall;

pub(super) use kontekst_engine::chat as openai_types;

/// The largest number of calls in one answer.
pub(super) const CALL_LIMIT: usize = 64;

/// The longest arguments of one call in bytes: 1 MiB.
pub(super) const ARGUMENTS_LIMIT: usize = 1024 * 1024;
