//! The error type of the built-in tools.

use kontekst_core::{ToolFailureKind, ToolOutcome};

use crate::FileError;

/// The error of a built-in tool. It becomes a failed [`ToolOutcome`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(crate) kind: ToolFailureKind,
    /// A sentence for the model.
    pub(crate) message: String,
}

impl Failure {
    pub(super) fn new(kind: ToolFailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn other(message: impl Into<String>) -> Self {
        Self::new(ToolFailureKind::Other, message)
    }

    pub(super) fn cancelled() -> Self {
        Self::new(ToolFailureKind::Cancelled, "cancelled")
    }
}

/// A plain message says what is wrong with the arguments of the call.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(ToolFailureKind::InvalidArguments, message)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::new(error.failure_kind(), error.message())
    }
}

pub(super) fn outcome(result: Result<String, Failure>) -> ToolOutcome {
    match result {
        Ok(text) => ToolOutcome::done(text),
        Err(Failure { kind, message }) => ToolOutcome::failed(kind, message),
    }
}
