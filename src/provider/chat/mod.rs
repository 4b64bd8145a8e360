//! A conversation as models are sent it: messages and tools in OpenAI's form, and calls in plain text.

pub mod form;
pub mod messages;
pub mod prompted;
