//! What a person is told when something went wrong, and the exit code that goes with it.
//!
//! Below the doors an error is a fact; here it becomes advice. Each error has one exhaustive `match`,
//! so that a new variant cannot go without.
#![warn(clippy::wildcard_enum_match_arm)]

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use super::printable::printable;
use crate::{
    config::{AgentError, BadBind, ConfigError, HomeError, LockError, NoHome, PathError, TomlError},
    core::BadName,
    sessions::SessionError,
};

/// How a command ended, for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Nobody reads the output any more, as in `kontekst sessions | head`. Not a failure.
    OutputClosed,
    /// The run failed.
    Failed,
    /// What was typed or configured is wrong.
    Usage,
    /// A human has to decide and there is no terminal to ask on.
    NeedsApproval,
    /// A tool was denied.
    Denied,
    /// Tokens, turns or time ran out.
    Limit,
    /// The daemon or the model cannot be reached.
    Unreachable,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl ExitStatus {
    /// The exit code. A run that did not do its job is never 0.
    pub fn code(self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NeedsApproval => 3,
            Self::Denied => 4,
            Self::Limit => 5,
            Self::Unreachable => 6,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

/// An error as the command line shows it: what, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    pub status: ExitStatus,
    /// One sentence without a full stop.
    pub message: String,
    /// From the outermost to the root.
    pub causes: Vec<String>,
    pub hints: Vec<String>,
}

impl CliError {
    pub fn new(kind: ExitStatus, message: impl Into<String>) -> Self {
        Self { status: kind, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Failed, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message)
    }

    pub fn needs_approval(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::NeedsApproval, message)
    }

    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Denied, message)
    }

    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Limit, message)
    }

    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Unreachable, message)
    }

    /// The error's own text and all its sources.
    pub fn from_error(kind: ExitStatus, error: &dyn Error) -> Self {
        let mut shown = Self::new(kind, error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            shown.causes.push(cause.to_string());
            source = cause.source();
        }
        shown
    }

    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status.code())
    }

    /// Writes the error for a person, several lines. Writes nothing for [`Kind::Unread`].
    ///
    /// Only text comes out, whatever a file name or a model server put in.
    ///
    /// # Errors
    ///
    /// When `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.status == ExitStatus::OutputClosed {
            return Ok(());
        }
        write!(out, "{self}")
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, label: &str, text: &str| {
            // Further lines are set under the label, so that a message cannot pass for one of ours.
            writeln!(f, "{label}: {}", printable(text.trim_end()).replace('\n', "\n    "))
        };
        line(f, "kontekst: error", &self.message)?;
        self.causes.iter().try_for_each(|cause| line(f, "  caused by", cause))?;
        self.hints.iter().try_for_each(|hint| line(f, "  hint", hint))
    }
}

impl Error for CliError {}

/// For output that cannot be written.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        let kind = if error.kind() == io::ErrorKind::BrokenPipe {
            ExitStatus::OutputClosed
        } else {
            ExitStatus::Failed
        };
        Self::new(kind, "cannot write the output").cause(error.to_string())
    }
}

impl From<NoHome> for CliError {
    fn from(error: NoHome) -> Self {
        Self::from_error(ExitStatus::Usage, &error).hint("set KONTEKST_HOME to a directory of yours")
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
        let shown = Self::from_error(ExitStatus::Failed, &error);
        match io_hint(&error.source) {
            Some(hint) => shown.hint(hint),
            None => shown,
        }
    }
}

/// What to do about an I/O error, where that can be said without knowing the file.
fn io_hint(error: &io::Error) -> Option<&'static str> {
    use io::ErrorKind;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the standard library adds kinds; most need no hint")]
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("free some disk space and try again"),
        ErrorKind::PermissionDenied => {
            Some("the files belong to the user who runs the daemon; KONTEKST_HOME names another directory")
        }
        ErrorKind::ReadOnlyFilesystem => Some("set KONTEKST_HOME to a directory that can be written"),
        _ => None,
    }
}

impl From<HomeError> for CliError {
    fn from(error: HomeError) -> Self {
        match error {
            HomeError::NotOurs { .. } => Self::from_error(ExitStatus::Usage, &error)
                .hint("run as that user, or set KONTEKST_HOME to a directory of yours"),
            HomeError::Open { ref path, .. } => {
                let hint = format!("chmod 700 '{}'", path.display());
                Self::from_error(ExitStatus::Usage, &error).hint(hint)
            }
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
            ConfigError::File(error @ TomlError::Invalid { .. }) => {
                Self::from(error).hint("correct the line, or move the file away: a new one has all keys and their defaults")
            }
            ConfigError::File(error @ TomlError::Path(_)) => error.into(),
            ConfigError::Remote { .. } => Self::from_error(ExitStatus::Usage, &error).hint(
                "use `bind = \":50051\"` for this machine only, or set `allow_remote = true`: who then has the token can run tools as you",
            ),
        }
    }
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::NotFound { ref name, .. } => {
                let hint = format!(
                    "`kontekst agents` lists them; agents/{name}/agent.md in the data directory makes one"
                );
                Self::from_error(ExitStatus::Usage, &error).hint(hint)
            }
            AgentError::Config(error) => error.into(),
            AgentError::Path(error) => Self { status: ExitStatus::Usage, ..error.into() },
        }
    }
}

impl From<LockError> for CliError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => {
                Self::from_error(ExitStatus::Failed, &error).hint("`kontekst status` shows the daemon")
            }
            LockError::Path(error) => error.into(),
        }
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        let known = || "`kontekst sessions` lists them".to_owned();
        let (kind, hint) = match &error {
            SessionError::Busy(_) => (
                ExitStatus::Failed,
                Some("wait for the run that has it open, or use another session".to_owned()),
            ),
            SessionError::NotFound(_) => (ExitStatus::Usage, Some(known())),
            SessionError::Ambiguous { ids, .. } => {
                let shown: Vec<_> = ids.iter().take(5).map(ToString::to_string).collect();
                let more = if ids.len() > shown.len() { " …" } else { "" };
                (ExitStatus::Usage, Some(format!("type more of it: {}{more}", shown.join(", "))))
            }
            SessionError::Active(_) => {
                (ExitStatus::Usage, Some("add --force; no session is active then".to_owned()))
            }
            SessionError::TooLong { .. } => (ExitStatus::Limit, None),
            SessionError::Append { source, .. } => (ExitStatus::Failed, io_hint(source).map(str::to_owned)),
            SessionError::ReadOnly { source, .. } => {
                let hint = source.as_ref().and_then(io_hint).unwrap_or("look at the disk and at daemon.log");
                (ExitStatus::Failed, Some(hint.to_owned()))
            }
            SessionError::Path(error) => (ExitStatus::Failed, io_hint(&error.source).map(str::to_owned)),
        };
        let shown = Self::from_error(kind, &error);
        match hint {
            Some(hint) => shown.hint(hint),
            None => shown,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::config::{AgentConfig, Config, Home};

    #[track_caller]
    fn check(error: impl Into<CliError>, code: u8, expect: &Expect) {
        let error = error.into();
        assert_eq!(error.status.code(), code);
        let mut out = Vec::new();
        error.write(&mut out).unwrap();
        expect.assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn an_error_says_what_why_and_what_to_do() {
        check(
            CliError::unreachable("cannot start the daemon")
                .cause("127.0.0.1:50051 is in use")
                .hint("set `bind` in ~/.kontekst/config.toml, or stop what is listening there"),
            6,
            &expect![[r#"
                kontekst: error: cannot start the daemon
                  caused by: 127.0.0.1:50051 is in use
                  hint: set `bind` in ~/.kontekst/config.toml, or stop what is listening there
            "#]],
        );
    }

    #[test]
    fn nothing_but_text_comes_out_and_no_line_is_forged() {
        check(
            CliError::failed("a\x1b]0;x\x07b\u{202e}\nkontekst: error: forged\n\n"),
            1,
            &expect![[r#"
            kontekst: error: ab\u{202e}
                kontekst: error: forged
        "#]],
        );
    }

    #[test]
    fn errors_of_the_lower_layers_get_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::find(Some(dir.path().join("x"))).unwrap();
        home.create().unwrap();
        std::fs::write(home.config(), "context_size = 1").unwrap();
        let error = CliError::from(Config::load(&home).unwrap_err());
        assert_eq!((error.status, error.hints.len()), (ExitStatus::Usage, 1));
        check(
            AgentConfig::load(&home, &"coder".parse().unwrap()).unwrap_err(),
            2,
            &expect![[r#"
            kontekst: error: no agent `coder`; there are: none
              hint: `kontekst agents` lists them; agents/coder/agent.md in the data directory makes one
        "#]],
        );
        check(
            "../x".parse::<crate::core::Name>().unwrap_err(),
            2,
            &expect![[r#"
            kontekst: error: `../x` is not a name: use letters, digits, `.`, `_` and `-`, at most 128, the first a letter or digit
        "#]],
        );
        check(
            NoHome,
            2,
            &expect![[r#"
            kontekst: error: cannot tell the home directory of this user
              hint: set KONTEKST_HOME to a directory of yours
        "#]],
        );
        check(
            PathError::new("/x", io::Error::from(io::ErrorKind::StorageFull)),
            1,
            &expect![[r#"
            kontekst: error: cannot access `/x`
              caused by: no storage space
              hint: free some disk space and try again
        "#]],
        );
        check(
            SessionError::Append { id: "s".parse().unwrap(), source: io::ErrorKind::StorageFull.into() },
            1,
            &expect![[r#"
                kontekst: error: session `s` was not extended
                  caused by: no storage space
                  hint: free some disk space and try again
            "#]],
        );
        check(
            SessionError::Ambiguous {
                text: "0".to_owned(),
                ids: vec!["01".parse().unwrap(), "02".parse().unwrap()],
            },
            2,
            &expect![[r#"
                kontekst: error: `0` is the start of 2 session ids
                  hint: type more of it: 01, 02
            "#]],
        );
        check(
            SessionError::Active("s".parse().unwrap()),
            2,
            &expect![[r#"
            kontekst: error: session `s` is the active one
              hint: add --force; no session is active then
        "#]],
        );
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        check(io::Error::from(io::ErrorKind::BrokenPipe), 0, &expect![""]);
    }
}
