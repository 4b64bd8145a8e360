//! A reason why a model cannot be opened or run.

use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use crate::{gguf::GgufError, inference::shape::ARCHITECTURES};

/// A reason why a model cannot be opened or run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{path} cannot be read", path = .path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file is not a GGUF file, or its header is cut off or contradicts itself.
    #[error(transparent)]
    Header(#[from] GgufError),
    /// The header can be read, but what it says about the model is incomplete or contradicts itself.
    #[error("the model file is broken: {0}")]
    Broken(String),
    #[error("the model's architecture is {0}; the built-in engine knows {known}", known = ARCHITECTURES.join(", "))]
    Architecture(String),
    /// The architecture is known, but the model needs something that this engine does not have.
    #[error("the built-in engine does not have what the model needs: {0}")]
    Unsupported(String),
    /// The prompt leaves no room for an answer.
    #[error("the prompt has {prompt} tokens and the model takes {context} with its answer")]
    TooLong { prompt: u32, context: u32 },
    /// The computation itself failed.
    #[error("the model could not be run: {0}")]
    Failed(String),
}

/// Runs `work` and turns a panic in it into an error. What `work` was changing must not be used afterwards.
pub(crate) fn catch_panic<T, E: From<EngineError>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(EngineError::Failed(panic_message(&*panic)).into()))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked").to_owned()
}
