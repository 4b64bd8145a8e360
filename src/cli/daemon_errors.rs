//! What a user is told when the daemon cannot be reached or cannot start.
#![warn(clippy::wildcard_enum_match_arm)]

use crate::{client::ClientError, daemon::DaemonError};

use super::error::{CliError, ExitStatus};

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Home(error) => error.into(),
            ClientError::Refused { message, causes, config } => {
                let kind = if config { ExitStatus::Usage } else { ExitStatus::Unreachable };
                let error = Self::new(kind, format!("the daemon cannot start: {message}"));
                let error = causes.into_iter().fold(error, Self::cause);
                if config { error } else { error.hint("`kontekst daemon` shows it start, in this terminal") }
            }
            ClientError::Died { log } => {
                let error = Self::unreachable("the daemon ended before it was ready");
                log.into_iter()
                    .fold(error, |error, line| error.cause(super::printable::printable(&line)))
                    .hint("`kontekst daemon` shows it start, in this terminal")
            }
            ClientError::NotRunning => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("`kontekst run` starts it when it is needed"),
            ClientError::WrongOwner { .. } => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("nothing was sent to it; choose another data directory with KONTEKST_HOME"),
            ClientError::Connect { .. } => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("a path that is too long for a socket? KONTEKST_HOME can be a shorter one"),
            ClientError::Lock(_) => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("another kontekst is starting the daemon and takes long; try again"),
            ClientError::Transport(_) => Self::from_error(ExitStatus::Unreachable, &error)
                .hint("`kontekst daemon restart` replaces it"),
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
                .hint("`kontekst status` shows it, `kontekst daemon stop` ends it"),
            DaemonError::Listen { .. } => Self::from_error(ExitStatus::Failed, &error)
                .hint("a path that is too long for a socket? KONTEKST_HOME can be a shorter one"),
            DaemonError::Lock(_) | DaemonError::Path(_) | DaemonError::Runtime(_) | DaemonError::Serve(_) => {
                Self::from_error(ExitStatus::Failed, &error)
            }
        }
    }
}
