//! Notices calls that are made again and again with the same result.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::Value;

use super::with_text;
use crate::{
    agent::protocol::{FailureKind, RunError},
    core::{ToolCall, ToolOutcome},
    tools::{Effect, builtin::RUN_COMMAND},
};

/// The run ends when a call was made this often with the same result, and nothing was changed in between.
const MAX_SAME: u32 = 4;

/// Follows the result of a call that was made before. The model reads it.
pub(super) const NOTE: &str = "[You have made exactly this call before, with the same result. Do the next step, or give your \
                    final answer.]";

/// Counts the calls of a run that runs in the daemon. A loop of two or three calls is found as well, because each of its
/// calls is counted for itself.
#[derive(Default)]
pub(in crate::agent) struct RepeatedCalls {
    /// The number of times that a call had a result, by the hash of both.
    counts: HashMap<u64, u32>,
    /// The tool whose call was made too often.
    looping: Option<String>,
    /// The tools whose calls had the same result again in the last turn.
    made_again: Vec<String>,
    /// The hashes of the command lines that have run.
    commands: HashSet<u64>,
}

impl RepeatedCalls {
    /// Counts a call and its result, and returns the result as the model is to read it. After a change of a file other
    /// calls may well be made again, and so after a command line that has not run before.
    pub(in crate::agent) fn count(
        &mut self,
        call: &ToolCall,
        outcome: &ToolOutcome,
        effect: &Effect,
    ) -> ToolOutcome {
        let key = key(call, outcome);
        let seen = self.counts.get(&key).copied().unwrap_or(0) + 1;
        let changes = matches!(effect, Effect::Change(_)) && seen == 1 && !outcome.is_error();
        if changes || (call.name == RUN_COMMAND && self.commands.insert(call_key(call))) {
            self.counts.clear();
        }
        self.counts.insert(key, seen);
        if seen > 1 {
            self.made_again.push(call.name.clone());
        }
        if seen >= MAX_SAME {
            self.looping = Some(call.name.clone());
        }
        if seen == 1 { outcome.clone() } else { with_text(outcome.clone(), NOTE) }
    }

    /// Returns the tools whose calls had the same result again in the last turn, once.
    pub(in crate::agent) fn take_made_again(&mut self) -> Vec<String> {
        std::mem::take(&mut self.made_again)
    }

    /// # Errors
    ///
    /// [`FailureKind::Limit`] if a call was made too often.
    pub(in crate::agent) fn check(&self) -> Result<(), RunError> {
        let Some(tool) = &self.looping else { return Ok(()) };
        let message =
            format!("the model called {tool} {MAX_SAME} times with the same arguments and the same result");
        Err(RunError::new(FailureKind::Limit, message)
            .hint("ask for less at a time, or use a larger model (`kontekst models`)"))
    }
}

/// Returns the hash of a call and its result. The order and spacing of the arguments makes no difference.
fn key(call: &ToolCall, outcome: &ToolOutcome) -> u64 {
    let mut hasher = DefaultHasher::new();
    call_key(call).hash(&mut hasher);
    if call.name == RUN_COMMAND {
        without_fractions(outcome.text()).for_each(|part| part.hash(&mut hasher));
    } else {
        outcome.text().hash(&mut hasher);
    }
    hasher.finish()
}

fn call_key(call: &ToolCall) -> u64 {
    let mut hasher = DefaultHasher::new();
    let arguments = serde_json::from_str::<Value>(&call.arguments).map(|value| value.to_string());
    (&call.name, arguments.as_deref().unwrap_or(&call.arguments)).hash(&mut hasher);
    hasher.finish()
}

/// Returns the parts of a text without numbers that have a fraction. In the output of a command these are times, which
/// differ from one run to the next.
fn without_fractions(text: &str) -> impl Iterator<Item = &str> {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let parts = text.split_inclusive(move |c: char| !is_of_number(c));
    parts.map(move |part| {
        let rest = part.trim_start_matches(is_of_number);
        let number = &part[..part.len() - rest.len()];
        let has_fraction = number.contains('.') && number.starts_with(|c: char| c.is_ascii_digit());
        if has_fraction { rest } else { part }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{core::CallId, tools::Change};

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall { id: CallId::local(), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    /// Counts the calls: arguments, result, and true if the call changes a file. Returns the number of notes, and
    /// whether the run would end.
    fn outcome(calls: &[(&str, &str, bool)]) -> (usize, bool) {
        let mut repeated = RepeatedCalls::default();
        let notes = calls
            .iter()
            .map(|(arguments, result, changes)| {
                let result = ToolOutcome::Done((*result).to_owned());
                let change = Change { path: "a".to_owned(), old: None, new: String::new() };
                let effect = if *changes { Effect::Change(change.into()) } else { Effect::Reads };
                repeated.count(&call("f", arguments), &result, &effect)
            })
            .filter(|outcome| outcome.text().ends_with(NOTE));
        (notes.count(), repeated.check().is_err())
    }

    #[test]
    fn the_second_repetition_has_a_note_and_the_fourth_ends_the_run() {
        let again = (r#"{"path":"a","n":1}"#, "x", false);
        let respelled = (r#"{ "n": 1, "path": "a" }"#, "x", false);
        assert_eq!(outcome(&[again]), (0, false));
        assert_eq!(outcome(&[again, respelled]), (1, false));
        assert_eq!(outcome(&[again, again, respelled]), (2, false));
        assert_eq!(outcome(&[again, again, respelled, again]), (3, true));
    }

    #[test]
    fn a_command_is_repeated_though_its_times_differ_and_another_command_is_progress() {
        let mut repeated = RepeatedCalls::default();
        let mut count = |line: &str, result: &str| {
            let arguments = json!({"command": line}).to_string();
            let result = ToolOutcome::Done(result.to_owned());
            repeated.count(&call(RUN_COMMAND, &arguments), &result, &Effect::Unknown);
            repeated.check().is_err()
        };
        assert!(!count("test", "exit status 1 after 0.1 s\n1 failed in 0.02s"));
        assert!(!count("test", "exit status 1 after 0.2 s\n1 failed in 0.03s"));
        assert!(!count("test", "exit status 1 after 1.1 s\n2 failed in 0.02s"), "another result");
        for fix in ["sed 1", "sed 2", "sed 3", "sed 4", "sed 5"] {
            assert!(!count(fix, "exit status 0 after 0.1 s, no output"));
            assert!(!count("test", "exit status 1 after 0.3 s\n1 failed in 0.02s"));
        }
        assert!(!count("test", "exit status 1 after 0.3 s\n1 failed in 0.04s"));
        assert!(!count("test", "exit status 1 after 0.4 s\n1 failed in 0.04s"));
        assert!(count("test", "exit status 1 after 0.5 s\n1 failed in 0.05s"));
    }

    #[test]
    fn loops_of_several_calls_are_found_and_progress_is_no_loop() {
        let (a, b, c) = (("1", "x", false), ("2", "y", false), ("3", "z", false));
        assert!(outcome(&[a, b, c].repeat(4)).1);
        assert!(!outcome(&[a, b, c].repeat(3)).1);
        // The same call with another result, such as a page that is fetched until it is ready.
        assert_eq!(outcome(&[("1", "x", false), ("1", "y", false), ("1", "z", false)]), (0, false));
    }

    #[test]
    fn after_a_change_files_may_be_read_again_but_the_same_change_is_a_repetition() {
        let read = ("r", "x", false);
        let changes: Vec<String> = (0..6).map(|number| format!("w{number}")).collect();
        let turns: Vec<_> =
            changes.iter().flat_map(|change| [read, (change.as_str(), "done", true)]).collect();
        assert_eq!(outcome(&turns), (0, false));
        assert!(outcome(&[read, ("w", "done", true)].repeat(4)).1);
    }
}
