//! The end of a command.

use std::{fmt, io, time::Duration};

/// The end of a command that has run. All processes that it started have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    pub ending: Ending,
    pub duration: Duration,
    /// The bytes of output, including those after the limit.
    pub(crate) output: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The exit status of `sh`. 127 is a command that was not found, 126 one that cannot be run.
    Exited(i32),
    /// The number of the signal that ended `sh`.
    Signalled(i32),
    TimeOver,
    TooMuchOutput,
    /// More processes than [`super::Limits::processes`], where the kernel does not limit them.
    TooManyProcesses,
    Cancelled,
}

/// A reason why a command has not run.
#[derive(Debug)]
pub enum SandboxError {
    /// The processes of the sandbox cannot be started.
    Start(io::Error),
    /// The sandbox could not be set up. Has the step and the reason.
    SetUp(String),
}

impl SandboxError {
    /// Returns what went wrong, without what it means.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Start(error) => error.to_string(),
            Self::SetUp(reason) => reason.clone(),
        }
    }
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(f, "cannot start the sandbox: {error}"),
            Self::SetUp(reason) => write!(f, "cannot set up the sandbox: {reason}"),
        }
    }
}

impl std::error::Error for SandboxError {}
