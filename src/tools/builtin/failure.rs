//! The error type of the built-in tools.

use crate::{
    core::{ToolFailureKind, ToolOutcome},
    tools::FileError,
};

/// The error of a built-in tool. It becomes [`ToolOutcome::Failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub kind: ToolFailureKind,
    /// A sentence for the model.
    pub message: String,
}

impl Failure {
    pub(super) fn other(message: impl Into<String>) -> Self {
        Self { kind: ToolFailureKind::Other, message: message.into() }
    }

    pub(super) fn cancelled() -> Self {
        Self { kind: ToolFailureKind::Cancelled, message: "cancelled".to_owned() }
    }
}

/// A plain message says what is wrong with the arguments of the call.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { kind: ToolFailureKind::InvalidArguments, message }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self { kind: error.failure_kind(), message: error.message() }
    }
}

pub(super) fn outcome(result: Result<String, Failure>) -> ToolOutcome {
    match result {
        Ok(text) => ToolOutcome::Done(text),
        Err(Failure { kind, message }) => ToolOutcome::Failed { kind, message },
    }
}
