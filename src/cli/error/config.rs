//! Hints for errors of the data directory, the configuration and the sessions.
//!
//! The layers below report what happened. Each `match` here is exhaustive, so that a new variant gets a hint
//! too.
#![warn(clippy::wildcard_enum_match_arm)]

use kontekst_core::{BadName, Name, SessionId, io_hint, nearest};
use kontekst_store::{
    config::{
        AgentError, BadBind, ConfigError, HomeError, LockError, NoHome, PathError, TomlError, edit::EditError,
    },
    sessions::SessionError,
};

use super::{CliError, ExitStatus};

impl From<NoHome> for CliError {
    fn from(error: NoHome) -> Self {
        Self::from_error(ExitStatus::Usage, &error).hint("set KONTEKST_HOME to a directory that you own")
    }
}

impl From<BadName> for CliError {
    fn from(error: BadName) -> Self {
        Self::from_error(ExitStatus::Usage, &error)
    }
}

impl From<BadBind> for CliError {
    fn from(error: BadBind) -> Self {
        Self::from_error(ExitStatus::Usage, &error)
    }
}

impl From<PathError> for CliError {
    fn from(error: PathError) -> Self {
        Self::from_error(ExitStatus::Failed, &error).maybe_hint(io_hint(&error.source))
    }
}

impl From<HomeError> for CliError {
    fn from(error: HomeError) -> Self {
        match error {
            HomeError::WrongOwner { .. } => Self::from_error(ExitStatus::Usage, &error)
                .hint("run kontekst as that user, or set KONTEKST_HOME to a directory that you own"),
            HomeError::OpenToOthers { ref path, .. } => {
                let hint = format!("run `chmod 700 '{}'`", path.display());
                Self::from_error(ExitStatus::Usage, &error).hint(hint)
            }
            HomeError::NoUserHome { .. } => Self::from_error(ExitStatus::Usage, &error).hint(
                "set HOME to your home directory, or KONTEKST_HOME to a directory for the data of kontekst",
            ),
            HomeError::Path(error) => Self { status: ExitStatus::Usage, ..error.into() },
        }
    }
}

impl From<TomlError> for CliError {
    fn from(error: TomlError) -> Self {
        match error {
            TomlError::Invalid { .. } => Self::from_error(ExitStatus::Usage, &error),
            TomlError::Path(error) => Self { status: ExitStatus::Usage, ..error.into() },
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Home(error) => error.into(),
            ConfigError::File(error @ TomlError::Invalid { .. }) => Self::from(error).hint(
                "correct that line, or move the file away: the next command writes a new one with all keys and their defaults",
            ),
            ConfigError::File(error @ TomlError::Path(_)) => error.into(),
            ConfigError::Key { .. } => Self::from_error(ExitStatus::Usage, &error)
                .hint("set the variable to the key alone, and run `kontekst daemon restart` there"),
            ConfigError::Remote { .. } => Self::from_error(ExitStatus::Usage, &error)
                .hint("set `bind = \":50051\"` to listen for this machine only")
                .hint("or set `allow_remote = true`; everyone who has the token can then run tools as you"),
        }
    }
}

impl From<EditError> for CliError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Lock(error) => error.into(),
            EditError::Path(error) => Self { status: ExitStatus::Usage, ..error.into() },
            EditError::Syntax { .. } | EditError::NotTable { .. } => {
                Self::from_error(ExitStatus::Usage, &error)
                    .hint("correct that first; `kontekst doctor` lists all mistakes")
            }
            EditError::Changed { .. } => Self::from_error(ExitStatus::Failed, &error)
                .hint("put your change into the new file, or run the command again"),
            EditError::Refused { ref message, .. } => {
                let list = message.contains("sequence").then_some("write a list as '[\"one\", \"two\"]'");
                Self::from_error(ExitStatus::Usage, &error).hint("nothing was changed").maybe_hint(list)
            }
        }
    }
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::NotFound { ref name, ref available } => {
                let near = nearest(name, available.iter().map(Name::as_str));
                let create =
                    format!("write agents/{name}/agent.md in the data directory to create this agent");
                Self::from_error(ExitStatus::Usage, &error)
                    .maybe_hint(near.map(|near| format!("did you mean `{near}`?")))
                    .hint("run `kontekst agents` to list the agents")
                    .hint(create)
            }
            AgentError::Config(error) => error.into(),
            AgentError::Path(error) => Self { status: ExitStatus::Usage, ..error.into() },
        }
    }
}

impl From<LockError> for CliError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::from_error(ExitStatus::Failed, &error)
                .hint("run `kontekst status` to see the daemon that holds it"),
            LockError::Path(error) => error.into(),
        }
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        let (status, hint) = match &error {
            SessionError::Busy(_) => (
                ExitStatus::Failed,
                Some("wait for the run that uses it, or choose another session with --session".to_owned()),
            ),
            SessionError::NotFound(_) => {
                (ExitStatus::Usage, Some("run `kontekst sessions` to list the sessions".to_owned()))
            }
            SessionError::Ambiguous { found, .. } => {
                let shown: Vec<_> = found.iter().take(5).map(named).collect();
                let more = if found.len() > shown.len() { " …" } else { "" };
                (
                    ExitStatus::Usage,
                    Some(format!("type more characters; it can be {}{more}", shown.join(", "))),
                )
            }
            SessionError::Active(_) => (
                ExitStatus::Usage,
                Some("add --force to delete it all the same; no session is active then".to_owned()),
            ),
            SessionError::TooFew { .. } => {
                (ExitStatus::Usage, Some("`kontekst sessions show` numbers the messages".to_owned()))
            }
            SessionError::TooLong { .. } => (ExitStatus::Limit, None),
            SessionError::Append { source, .. } => (ExitStatus::Failed, io_hint(source).map(str::to_owned)),
            SessionError::ReadOnly { source, .. } => {
                let hint = source.as_ref().and_then(io_hint);
                (ExitStatus::Failed, Some(hint.unwrap_or("check the disk and daemon.log").to_owned()))
            }
            SessionError::Path(error) => (ExitStatus::Failed, io_hint(&error.source).map(str::to_owned)),
        };
        Self::from_error(status, &error).maybe_hint(hint)
    }
}

/// Formats a session with its title, if it has one.
fn named((id, title): &(SessionId, String)) -> String {
    if title.is_empty() { id.to_string() } else { format!("{id} ({title})") }
}
