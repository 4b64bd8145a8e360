//! Notices that a request asks for a command and none was run: the model only said that it was.

use serde_json::Value;

use crate::{
    agent::protocol::{FailureKind, RunError},
    core::{ToolCall, ToolFailureKind, ToolOutcome},
    provider::{FinishReason, Turn},
    tools::builtin::{RUN_COMMAND, has_succeeded},
};

use super::{
    change_request::{AskedCommand, CommandAim},
    file_changes::CHANGING_TOOLS,
    offer::READING_TOOLS,
    unfinished_answers::{AnswerCheck, MAX_ASKED_AGAIN, hint},
};

/// The words of git if everything is committed already. Its exit status is 1 then.
const NOTHING_TO_COMMIT: &str = "nothing to commit";

/// Follows whether the commands were run that a run was asked for.
#[derive(Default)]
pub(in crate::agent) struct MissingCommand {
    /// Each with the number of times that the model was asked for it.
    asked: Vec<(AskedCommand, u32)>,
    /// A call was made that is neither one of a file tool of the daemon nor a commit. What it ran is not looked at.
    has_run: bool,
    /// A call was made that may have committed the changes.
    may_have_committed: bool,
}

impl MissingCommand {
    pub(super) fn new(asked: Vec<AskedCommand>) -> Self {
        let asked = asked.into_iter().map(|command| (command, 0)).collect();
        Self { asked, ..Self::default() }
    }

    /// Notes a call whose effect is not known.
    pub(super) fn note_unknown(&mut self) {
        (self.has_run, self.may_have_committed) = (true, true);
    }

    /// Notes the result of a call of a tool of the daemon with the arguments `args`.
    pub(super) fn note_result(&mut self, call: &ToolCall, args: &Value, outcome: &ToolOutcome) {
        let name = &*call.name;
        let is_valid = outcome.failure_kind() != Some(ToolFailureKind::InvalidArguments);
        if !is_valid || READING_TOOLS.contains(&name) || CHANGING_TOOLS.contains(&name) {
            return;
        }
        let commits = args["command"].as_str().is_some_and(|line| line.contains("commit"));
        self.has_run |= !commits;
        let is_done = || has_succeeded(outcome) || outcome.text().contains(NOTHING_TO_COMMIT);
        self.may_have_committed |= name != RUN_COMMAND || (commits && is_done());
    }

    /// Judges an answer without calls. `changed` are the files that the run has changed.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked again too often.
    pub(super) fn check(&mut self, turn: &Turn, changed: &[String]) -> Result<AnswerCheck, RunError> {
        if turn.finish_reason == FinishReason::Length {
            return Ok(AnswerCheck::Finished);
        }
        let (has_run, may_have_committed) = (self.has_run, self.may_have_committed);
        let is_missing = |(command, _): &&mut (AskedCommand, u32)| match command.aim {
            CommandAim::Commit => !may_have_committed,
            CommandAim::Test | CommandAim::Other => !has_run,
        };
        let Some((AskedCommand { aim, clause }, times)) = self.asked.iter_mut().find(is_missing) else {
            return Ok(AnswerCheck::Finished);
        };
        let fact = match aim {
            CommandAim::Commit => "the changes were to be committed, and no command did that",
            CommandAim::Test | CommandAim::Other => "a command was to be run, and none was",
        };
        if *times == MAX_ASKED_AGAIN {
            return Err(
                RunError::new(FailureKind::Model, fact).hint(hint("use a larger model (`kontekst models`)"))
            );
        }
        *times += 1;
        let example = match aim {
            CommandAim::Commit => commit_line(changed).map(|line| format!(", for example `{line}`")),
            CommandAim::Test | CommandAim::Other => None,
        };
        let example = example.unwrap_or_default();
        let message =
            format!("The request is not done: {fact}. Do this now with {RUN_COMMAND}{example}: {clause}");
        Ok(AnswerCheck::AskAgain { fact: fact.to_owned(), message, must_call: true })
    }
}

/// Returns a command line that commits these files. Very small models run `commit` otherwise. `None` if there are no such files,
/// or a name would have to be quoted.
fn commit_line(changed: &[String]) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let are_plain = changed.iter().all(|path| path.chars().all(is_plain) && !path.starts_with('-'));
    let files = changed.join(" ");
    (are_plain && !changed.is_empty()).then(|| format!("git add {files} && git commit -m 'Change {files}'"))
}
