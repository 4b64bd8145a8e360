//! The input of the starter model, and its answers.

use kontekst_engine::{DecodeError, FinishReason, PrefillProgress, chat::Message};

use crate::tools::Tool;

/// A conversation whose last request is to be answered.
pub struct Conversation<'a> {
    /// Oldest first. The model sees the last message of the user and what follows it.
    pub messages: &'a [Message<'a>],
    /// The last message of the user, from which arguments are copied.
    pub request: &'a str,
    pub tools: &'a [Tool<'a>],
    /// Have this tool called, whatever the request says.
    pub forced: Option<&'a Tool<'a>>,
    /// The name under which what was read is kept for the next answer.
    pub session: &'a str,
    pub max_tokens: u32,
}

/// An event while an answer is made.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    Prefill {
        progress: PrefillProgress,
        /// Tokens of the prompt that were in the session's cache.
        cached: u32,
    },
    /// More of the answer, unless it is a call.
    Text(&'a str),
}

/// A whole answer. Counts are of tokens.
#[derive(Clone, Debug)]
pub struct Answer {
    pub content: Content,
    pub finish: FinishReason,
    pub prompt_tokens: u32,
    pub cached_tokens: u32,
    pub completion_tokens: u32,
}

/// The content of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    Call {
        name: String,
        /// A JSON object. The arguments of a forced call may be cut off, if the answer ended because of its length.
        arguments: String,
    },
}

/// A reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The part of the conversation that the model sees does not fit its context window. Counts are of tokens.
    #[error("the prompt has {prompt} tokens and the model takes {window} with its answer")]
    Overflow { prompt: u32, window: u32 },
    /// The request is none of those that the model can do, or its call failed. This is what it says about that.
    #[error("{0}")]
    Declined(String),
    #[error("the model's chat template refuses this: {0}")]
    Template(String),
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl Answer {
    /// An answer for which the model was not asked.
    pub(crate) fn of_rules(content: Content) -> Self {
        let finish = FinishReason::EndOfAnswer;
        Self { content, finish, prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0 }
    }
}
