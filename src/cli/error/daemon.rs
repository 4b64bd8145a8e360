//! Hints for a daemon that cannot be reached or cannot start.
#![warn(clippy::wildcard_enum_match_arm)]

use std::io;

use kontekst_core::io_hint;
use kontekst_store::config::LockError;

use crate::{client::ClientError, daemon::DaemonError};

use super::{CliError, ExitStatus};

const WATCH_IT_START: &str = "run `kontekst daemon` to watch it start in this terminal";

/// Returns what to do about an error of a socket.
fn socket_hint(source: &io::Error) -> Option<&'static str> {
    let too_long = source.kind() == io::ErrorKind::InvalidInput
        || source.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error());
    if too_long {
        Some("the path is too long for a socket: set KONTEKST_HOME to a directory with a shorter path")
    } else {
        io_hint(source)
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Home(error) => error.into(),
            ClientError::Refused { message, causes, config } => {
                let status = if config { ExitStatus::Usage } else { ExitStatus::Unreachable };
                let error = Self::new(status, format!("the daemon cannot start: {message}"));
                let error = causes.into_iter().fold(error, Self::cause);
                error.maybe_hint((!config).then_some(WATCH_IT_START))
            }
            ClientError::Died { log } => {
                let error = Self::unreachable("the daemon ended before it was ready");
                log.into_iter().fold(error, Self::cause).hint(WATCH_IT_START)
            }
            ClientError::NotRunning => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("run `kontekst run`, which starts it when it is needed"),
            ClientError::WrongOwner { .. } => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("set KONTEKST_HOME to another data directory; nothing was sent to that process"),
            ClientError::Connect { ref source, .. } => {
                Self::from_error(ExitStatus::Unreachable, &error).maybe_hint(socket_hint(source))
            }
            ClientError::NoReply => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("run `kontekst daemon stop --force` to end it; the next run starts a new one"),
            ClientError::Signal { .. } => Self::from_error(ExitStatus::Failed, &error),
            ClientError::Lock(LockError::Held { .. }) => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("another kontekst is still starting the daemon; try again"),
            ClientError::Lock(LockError::Path(error)) => {
                Self { status: ExitStatus::Unreachable, ..error.into() }
            }
            ClientError::Transport(_) => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("run `kontekst daemon restart` to replace the daemon"),
            ClientError::Spawn(_) | ClientError::Runtime(_) | ClientError::Status(_) => {
                Self::from_error(ExitStatus::Unreachable, &error)
            }
        }
    }
}

impl From<DaemonError> for CliError {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Home(error) => error.into(),
            DaemonError::Config(error) => error.into(),
            DaemonError::Running(_) => Self::from_error(ExitStatus::Failed, &error)
                .hint("run `kontekst status` to see it, or `kontekst daemon stop` to stop it"),
            DaemonError::Listen { ref source, .. } => {
                Self::from_error(ExitStatus::Failed, &error).maybe_hint(socket_hint(source))
            }
            DaemonError::OtherSocket(_) => Self::from_error(ExitStatus::Failed, &error)
                .hint("run `kontekst daemon install` again; `KONTEKST_HOME` has to be what it was then"),
            DaemonError::Lock(_) | DaemonError::Path(_) | DaemonError::Runtime(_) | DaemonError::Serve(_) => {
                Self::from_error(ExitStatus::Failed, &error)
            }
        }
    }
}
