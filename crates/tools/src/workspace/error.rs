//! The errors of reading and writing files of the workspace, with messages for the model.

use std::io;

use kontekst_core::ToolFailureKind;

/// The reason of a [`FileError::BadPath`] that leads to a file outside.
pub(super) const LEADS_OUT: &str = "leads out of the working directory; use a path relative to it";

/// The reason why a file was not read or written.
///
/// Each message names only the path that the model gave, so that it tells the model nothing about the
/// machine outside the working directory.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("the path `{path}` {reason}")]
    BadPath { path: String, reason: &'static str },
    #[error("`{0}` leads out of the working directory")]
    OutsideWorkspace(String),
    #[error("`{0}` goes through too many symbolic links")]
    TooManyLinks(String),
    #[error("file does not exist: {0}")]
    Missing(String),
    #[error("`{0}` is a directory")]
    Directory(String),
    #[error("`{0}` is not a regular file")]
    NotARegularFile(String),
    #[error("`{0}` is read-only")]
    ReadOnly(String),
    #[error("`{path}` has {bytes} bytes, more than the limit of {limit}")]
    TooLarge { path: String, bytes: u64, limit: u64 },
    #[error("{0} changed since it was shown; nothing was written. Read it again.")]
    Stale(String),
    /// The journal could not keep what a change would replace.
    #[error("{0} was not changed, because its content cannot be kept for `kontekst undo`: {1}")]
    NotRecorded(String, String),
    #[error("cannot {action} {path}")]
    Io {
        action: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
}

impl FileError {
    pub(crate) fn io(action: &'static str, path: &str, source: impl Into<io::Error>) -> Self {
        Self::Io { action, path: path.to_owned(), source: source.into() }
    }

    pub fn failure_kind(&self) -> ToolFailureKind {
        match self {
            Self::BadPath { reason: LEADS_OUT, .. } | Self::OutsideWorkspace(_) => {
                ToolFailureKind::OutsideWorkspace
            }
            Self::BadPath { .. } => ToolFailureKind::InvalidArguments,
            Self::Missing(_) => ToolFailureKind::NotFound,
            Self::Stale(_) => ToolFailureKind::Stale,
            Self::TooManyLinks(_)
            | Self::Directory(_)
            | Self::NotARegularFile(_)
            | Self::ReadOnly(_)
            | Self::TooLarge { .. }
            | Self::NotRecorded(..)
            | Self::Io { .. } => ToolFailureKind::Other,
        }
    }

    /// Returns the error and its cause in one line.
    pub fn message(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}
