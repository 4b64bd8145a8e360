//! The result of one check.

use std::io::Write;

use serde_json::{Value, json};

use crate::cli::{error::CliError, output::Palette, printable::literal_line};

/// The result of one check, with what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The part that was checked, in one or two words.
    pub(super) subject: &'static str,
    pub(super) level: Level,
    pub(super) message: String,
    /// A command that can be typed, or what else to do.
    pub(super) remedy: Option<String>,
}

/// The weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Ok,
    /// It works, and something could be better or is not as it looks.
    Warning,
    /// Something does not work.
    Problem,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    pub(super) fn ok(subject: &'static str, message: impl Into<String>) -> Self {
        Self { subject, level: Level::Ok, message: message.into(), remedy: None }
    }

    pub(super) fn warning(subject: &'static str, message: impl Into<String>) -> Self {
        Self { subject, level: Level::Warning, message: message.into(), remedy: None }
    }

    pub(super) fn problem(subject: &'static str, message: impl Into<String>) -> Self {
        Self { subject, level: Level::Problem, message: message.into(), remedy: None }
    }

    #[must_use]
    pub(super) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "subject": self.subject, "level": self.level.as_str(), "message": self.message, "remedy": self.remedy,
        })
    }

    /// Writes the finding on one line, and its remedy on a second one.
    pub(super) fn write(&self, palette: Palette, out: &mut dyn Write) -> Result<(), CliError> {
        let level = format!("{:<7}", self.level.as_str());
        let level = match self.level {
            Level::Ok => palette.green(&level),
            Level::Warning => palette.paint("33", &level),
            Level::Problem => palette.red(&level),
        };
        writeln!(out, "{level}  {:<14}  {}", self.subject, literal_line(&self.message))?;
        if let Some(remedy) = &self.remedy {
            writeln!(out, "{:<25}{} {}", "", palette.bold("fix:"), literal_line(remedy))?;
        }
        Ok(())
    }
}
