//! The rendering of a chat template as a job that another process can do.
//!
//! A template is a program by a stranger. What one of its steps costs has no limit: values are shared and lazy, so sixty
//! steps can make a list of 2^60 elements, and the next step looks at each of them. Only an operating system can hold
//! that to a limit, so the caller chooses the process in which a template is rendered.

use minijinja::Value;
use serde::{Deserialize, Serialize};

use super::jinja::Jinja;

/// A template and what it is to be rendered with, once for each context.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    source: String,
    contexts: Vec<Value>,
}

/// The result of one context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Text(String),
    /// The message that the template raised, or what is wrong with it, in one line.
    Refused(String),
    /// The limit that it exceeded.
    Stopped(String),
}

/// A reason why a template gave no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It is no valid template, or it refuses this conversation.
    #[error("{0}")]
    Refused(String),
    /// It exceeded a limit.
    #[error("it was stopped: {0}")]
    Stopped(String),
    #[error("cancelled")]
    Cancelled,
    /// It could not be run at all.
    #[error("it could not be run: {0}")]
    Failed(String),
}

/// Runs jobs.
pub trait Renderer {
    /// Returns one outcome for each context.
    ///
    /// # Errors
    ///
    /// Any [`TemplateError`] except [`TemplateError::Refused`].
    fn run(&self, job: &Job) -> Result<Vec<Outcome>, TemplateError>;
}

/// Runs jobs in this process. Only for templates that are part of the program: a hostile one can end the process.
#[derive(Clone, Copy, Debug)]
pub struct InThisProcess;

impl Renderer for InThisProcess {
    fn run(&self, job: &Job) -> Result<Vec<Outcome>, TemplateError> {
        Ok(job.run())
    }
}

impl Job {
    pub(super) fn new(source: &str, contexts: Vec<Value>) -> Self {
        Self { source: source.to_owned(), contexts }
    }

    /// Returns the job as JSON.
    ///
    /// # Panics
    ///
    /// Never: it consists of what JSON can say.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts, numbers, lists and maps with texts as keys")
    }

    /// Reads what [`Job::to_json`] wrote. Values may nest as deeply as the stack allows.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub fn from_json(json: &[u8]) -> serde_json::Result<Self> {
        let mut from = serde_json::Deserializer::from_slice(json);
        // A value that was just within the limit of a reader lies deeper in a job.
        from.disable_recursion_limit();
        Self::deserialize(&mut from)
    }

    /// Renders the template with each context.
    pub fn run(&self) -> Vec<Outcome> {
        match Jinja::new(&self.source) {
            Ok(jinja) => self.contexts.iter().map(|context| jinja.render(context.clone())).collect(),
            Err(error) => vec![Outcome::Refused(error); self.contexts.len()],
        }
    }
}

impl Outcome {
    pub(super) fn into_result(self) -> Result<String, TemplateError> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Refused(message) => Err(TemplateError::Refused(message)),
            Self::Stopped(limit) => Err(TemplateError::Stopped(limit)),
        }
    }
}
