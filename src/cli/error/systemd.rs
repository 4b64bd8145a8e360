//! Hints for units that cannot be written.
#![warn(clippy::wildcard_enum_match_arm)]

use kontekst_jobs::systemd::SystemdError;

use super::{CliError, ExitStatus};

impl From<SystemdError> for CliError {
    fn from(error: SystemdError) -> Self {
        match error {
            SystemdError::NoSystemctl
            | SystemdError::Start(_)
            | SystemdError::NoAnswer(_)
            | SystemdError::Busy(_) => Self::from_error(ExitStatus::Failed, &error),
            SystemdError::Failed { ref said, .. } => {
                said.iter().fold(Self::failed(error.to_string()), Self::cause)
            }
            SystemdError::Foreign(_) => Self::usage(error.to_string())
                .hint("move it away; a drop-in keeps your own settings: `systemctl --user edit kontekst`"),
            SystemdError::BadPath(_) => Self::usage(error.to_string()).hint("move it to a path that is text"),
            SystemdError::Path(error) => error.into(),
        }
    }
}
