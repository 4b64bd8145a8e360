//! The starter model: a small model that is part of kontekst, so that it works before a real one is there.
//!
//! The model knows five tools and a few sentences. It sees the last request of the user, and the calls and results that
//! followed; its chat template leaves out everything else. It answers with one call or with text, and rules hold the
//! answer to what it was shown: `call` and `copy` hold a call to the schema of its tool and to the words of the
//! request, `report` holds text about a result to the lines of the result. `training/` made the model.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod byte_rules;
mod call;
mod copy;
mod number_words;
mod numbers;
mod report;
mod search;
mod starter;

pub use kontekst_engine::{EngineError, FinishReason, PrefillProgress, chat::Message};

pub use self::starter::{Answer, AnswerError, Content, Conversation, Event, Starter};

/// The model, as a GGUF file.
pub const MODEL: &[u8] = include_bytes!("../kontekst.gguf");

/// A tool that the model may call.
pub struct Tool<'a> {
    pub name: &'a str,
    /// A JSON Schema of type `object`.
    pub parameters: &'a serde_json::Value,
    /// The arguments that are copied from the request, by name. Other arguments are free.
    pub copy: Vec<(&'a str, CopyKind)>,
}

/// The kind of an argument that is copied from the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// The path of a file: one of the request, or a directory and a file of it.
    Path,
    /// The address of a page. The request need not have its scheme.
    Url,
    /// A glob pattern, whose directory is one of the request.
    Pattern,
    /// The content of a file, which may end with a line break that the request does not have.
    Content,
    /// The text that a change replaces.
    OldText,
    /// The text that a change puts in its place.
    NewText,
    /// The number of the first line of a range.
    FirstLine,
    /// The number of the last line of a range.
    LastLine,
}
