//! Notices that tests which the request orders failed, or are older than the last change, while the answer does not say so.

use serde_json::Value;

use crate::{
    agent::protocol::{FailureKind, RunError},
    core::{ToolCall, ToolFailureKind, ToolOutcome},
    provider::{FinishReason, Turn},
    tools::builtin::{RUN_COMMAND, has_succeeded},
};

use super::{
    change_request::{AskedCommand, CommandAim, is_test},
    error_ladder::first_line,
    unfinished_answers::{AnswerCheck, MAX_ASKED_AGAIN, hint},
};

/// The longest command line that a message repeats, in bytes.
const MAX_LINE: usize = 200;

/// The beginnings of words that say that something failed, in lower case.
const FAILURE: [&str; 14] = [
    "fail",
    "error",
    "crash",
    "broke",
    "unable",
    "cannot",
    "wrong",
    "incorrect",
    "miss",
    "unsuccess",
    "problem",
    "fehl",
    "scheiter",
    "exception",
];
/// Words that say so by themselves, in lower case. "Doesn" is the beginning of "doesn't".
const NEGATION: [&str; 9] = ["not", "nicht", "doesn", "don", "didn", "isn", "wasn", "couldn", "exit"];
/// Words before a word for a failure that say that there was none, in lower case.
const NONE: [&str; 8] = ["no", "without", "0", "zero", "any", "never", "longer", "keine"];

/// Programs that only show what a file of tests has.
const READERS: [&str; 11] = ["cat", "ls", "grep", "rg", "head", "tail", "find", "wc", "git", "which", "file"];

/// Follows the tests of a run that was asked for them.
#[derive(Default)]
pub(in crate::agent) struct TestRuns {
    is_asked: bool,
    /// The last command that finds mistakes.
    last: Option<TestRun>,
    /// The model was told that the tests are older than the last change.
    asked_to_repeat: bool,
    asked_again: u32,
}

struct TestRun {
    line: String,
    /// The way in which it failed, such as "exit status 1".
    failure: Option<String>,
    /// A file was changed after it.
    is_outdated: bool,
}

impl TestRuns {
    pub(super) fn new(asked: &[AskedCommand]) -> Self {
        let is_asked = asked.iter().any(|command| command.aim == CommandAim::Test);
        Self { is_asked, ..Self::default() }
    }

    /// Notes that a file was changed.
    pub(super) fn note_change(&mut self) {
        if let Some(last) = &mut self.last {
            last.is_outdated = true;
        }
    }

    /// Notes the result of a call of a tool of the daemon with the arguments `args`.
    pub(super) fn note_result(&mut self, call: &ToolCall, args: &Value, outcome: &ToolOutcome) {
        let line = args["command"].as_str().unwrap_or_default();
        let is_valid = outcome.failure_kind() != Some(ToolFailureKind::InvalidArguments);
        if self.is_asked && call.name == RUN_COMMAND && is_valid && runs_tests(line) {
            let failure = || {
                let text = first_line(outcome.text());
                text.split(" after ").next().unwrap_or_default().to_owned()
            };
            self.last = Some(TestRun {
                line: line[..line.floor_char_boundary(MAX_LINE)].to_owned(),
                failure: (!has_succeeded(outcome)).then(failure),
                is_outdated: false,
            });
        }
    }

    /// Judges an answer without calls. `expects_change` says that the request asks for a change of files, too, and
    /// `files_differ` that the run has made one.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was told too often that the tests failed.
    pub(super) fn check(
        &mut self,
        turn: &Turn,
        expects_change: bool,
        files_differ: bool,
    ) -> Result<AnswerCheck, RunError> {
        let is_over = turn.finish_reason == FinishReason::Length;
        let Some(TestRun { line, failure, is_outdated }) = self.last.as_ref().filter(|_| !is_over) else {
            return Ok(AnswerCheck::Finished);
        };
        if expects_change && *is_outdated && !std::mem::replace(&mut self.asked_to_repeat, true) {
            let fact = format!("files were changed after the last run of `{line}`");
            let message = format!("The request is not done: {fact}. Run it again now with {RUN_COMMAND}.");
            return Ok(AnswerCheck::AskAgain { fact, message, must_call: true });
        }
        let Some(failure) = failure.as_ref().filter(|_| !says_failure(&turn.content)) else {
            return Ok(AnswerCheck::Finished);
        };
        let fact = format!("the answer does not say that `{line}` failed ({failure})");
        if self.asked_again == MAX_ASKED_AGAIN {
            return Err(
                RunError::new(FailureKind::Model, fact).hint(hint("use a larger model (`kontekst models`)"))
            );
        }
        self.asked_again += 1;
        let is_first = self.asked_again == 1;
        let way = match expects_change {
            true if !files_differ => {
                ", and no file has been changed yet. Change the file now with edit_file or write_file, and run it again."
            }
            true if is_first => ". Repair what it reports now, and run it again.",
            true => {
                ". Repair what it reports now and run it again, or say in the answer that it failed, and why."
            }
            false => ". Say in the answer that it failed, and why.",
        };
        let message = format!("`{line}` failed ({failure}){way}");
        Ok(AnswerCheck::AskAgain { fact, message, must_call: expects_change && is_first })
    }
}

/// Returns true for a command line that finds mistakes.
fn runs_tests(line: &str) -> bool {
    is_test(line) && !line.split_whitespace().next().is_some_and(|program| READERS.contains(&program))
}

/// Returns true if an answer speaks of a failure. "No errors" is none.
fn says_failure(answer: &str) -> bool {
    let lower = answer.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().any(|(at, word)| {
        let is_failure = FAILURE.iter().any(|beginning| word.starts_with(beginning));
        let is_denied = || words[at.saturating_sub(2)..at].iter().any(|before| NONE.contains(before));
        NEGATION.contains(word) || (is_failure && !is_denied())
    })
}

#[cfg(test)]
mod tests {
    use super::{runs_tests, says_failure};

    #[test]
    fn command_lines_that_run_tests_are_known() {
        for line in ["pytest -q", "python3 test_calc.py", "cd a && make check", "cargo test"] {
            assert!(runs_tests(line), "{line}");
        }
        for line in ["", "cat test_calc.py", "grep -rn add tests", "git status", "python3 calc.py"] {
            assert!(!runs_tests(line), "{line}");
        }
    }

    #[test]
    fn answers_that_speak_of_a_failure_are_known() {
        for answer in [
            "The tests failed. Please check the installation of pytest.",
            "1 of 3 tests does not pass.",
            "test_add fails: -1 is not 5",
            "The build doesn't work.",
            "Der Test schlägt fehl.",
            "There was an error in calc.py.",
        ] {
            assert!(says_failure(answer), "{answer}");
        }
        for answer in [
            "The bug was fixed in calc.py and the test passed.",
            "All tests pass with no errors.",
            "0 tests failed, without any failures.",
            "It no longer fails.",
            "Done.",
            "",
        ] {
            assert!(!says_failure(answer), "{answer}");
        }
    }
}
