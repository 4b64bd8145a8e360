//! The checks of a run: commands of the user that decide whether what the model did is good enough.

use std::sync::Arc;

use kontekst_tools::CommandRunner;

use crate::run::{FailureKind, RunError};

/// The checks of one run.
#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) commands: Vec<String>,
    pub(crate) runner: Option<Arc<CommandRunner>>,
    /// The checks that failed before the first change. `None` before these were run.
    pub(crate) failed_before: Option<Vec<String>>,
    /// Files may differ from what they were before the run.
    pub(crate) is_due: bool,
    pub(crate) rounds: u32,
    /// The check that failed last, with what it printed.
    pub(crate) failed: Option<(String, String)>,
}

impl Checks {
    /// # Errors
    ///
    /// [`FailureKind::Request`] if there are checks and no program that could run them.
    pub(crate) fn new(commands: Vec<String>, runner: Option<&Arc<CommandRunner>>) -> Result<Self, RunError> {
        let commands: Vec<String> =
            commands.into_iter().filter(|command| !command.trim().is_empty()).collect();
        if !commands.is_empty() && runner.is_none() {
            return Err(RunError::new(FailureKind::Request, "this daemon cannot run checks"));
        }
        Ok(Self { commands, runner: runner.cloned(), ..Self::default() })
    }

    /// Notes that files were changed before the run was parked. What failed before that is not known any more.
    pub(crate) fn note_earlier_change(&mut self) {
        self.is_due = true;
        self.failed_before = Some(Vec::new());
    }

    /// Notes that files may have been changed.
    pub(crate) fn note_change(&mut self) {
        self.is_due = true;
    }
}
