//! Notices answers that are empty, that repeat themselves, or that announce an action instead of taking it.

use crate::{
    agent::protocol::{FailureKind, RunError},
    provider::{FinishReason, Turn},
};

/// The model is asked again this often in a run, for each kind of problem.
pub(super) const MAX_ASKED_AGAIN: u32 = 2;

pub(super) const EMPTY: &str = "Your answer was empty. Give your answer now.";
const REPETITION: &str = "You wrote the same text again and again and were stopped. Do not repeat it. Take the next step, or give \
                          a short answer.";
pub(super) const ANNOUNCED: &str =
    "You said what you would do, and did not do it. Call the tool now, or give your final answer.";

/// The longest answer that can be an announcement, in bytes.
const ANNOUNCEMENT_LIMIT: usize = 400;

/// The beginnings of a sentence that announces an action, in lower case.
const ANNOUNCEMENTS: &[&str] = &[
    "i will ",
    "i'll ",
    "i’ll ",
    "let me ",
    "let's ",
    "let’s ",
    "i am going to ",
    "i'm going to ",
    "now i ",
    "first, i",
    "next, i",
];

/// The verbs of actions that a tool takes, in lower case.
const ACTIONS: &[&str] = &[
    "call", "change", "check", "create", "edit", "examine", "fetch", "find", "fix", "inspect", "list",
    "look", "modify", "open", "read", "replace", "run", "search", "start", "update", "use", "view", "write",
];

/// Counts how often the model was asked again.
#[derive(Default)]
pub(in crate::agent) struct UnfinishedAnswers {
    asked_again: u32,
}

/// The reason why an answer is not finished.
pub(super) struct Unfinished {
    /// The reason with which the run fails if asking again does not help.
    pub(super) fact: String,
    /// The text that the model reads.
    pub(super) message: String,
    /// The model must call a tool then.
    pub(super) must_call: bool,
}

/// The judgement about an answer without calls.
pub(in crate::agent) enum AnswerCheck {
    Finished,
    /// The model reads this message, and answers again. It must call a tool then if `must_call`.
    AskAgain {
        /// The reason why the answer does not count.
        fact: String,
        message: String,
        must_call: bool,
    },
}

impl AnswerCheck {
    /// Returns what `next` says if the answer is finished, and else this.
    ///
    /// # Errors
    ///
    /// That of `next`.
    pub(super) fn and_then(self, next: impl FnOnce() -> Result<Self, RunError>) -> Result<Self, RunError> {
        match self {
            Self::Finished => next(),
            Self::AskAgain { .. } => Ok(self),
        }
    }
}

/// Returns what a person can do after a model was asked again too often: `way`, or to switch these checks off.
pub(super) fn hint(way: &str) -> String {
    format!("{way}; without this check: `unfinished = false` under [rails] of the agent")
}

impl UnfinishedAnswers {
    /// Judges an answer without calls. `problem` is what the run itself says against it.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Model`] if the model was asked again too often.
    pub(super) fn check(
        &mut self,
        turn: &Turn,
        has_tools: bool,
        problem: impl FnOnce() -> Option<Unfinished>,
    ) -> Result<AnswerCheck, RunError> {
        // An answer that was cut has an ending of its own.
        if turn.finish_reason == FinishReason::Length {
            return Ok(AnswerCheck::Finished);
        }
        let found = if turn.finish_reason == FinishReason::Repetition {
            Some(Unfinished {
                fact: "the model repeated itself".to_owned(),
                message: REPETITION.to_owned(),
                must_call: false,
            })
        } else if turn.content.trim().is_empty() {
            Some(Unfinished {
                fact: "the model gave an empty answer".to_owned(),
                message: EMPTY.to_owned(),
                must_call: false,
            })
        } else if has_tools && is_announcement(&turn.content) {
            Some(Unfinished {
                fact: "the model announced an action and did not take it".to_owned(),
                message: ANNOUNCED.to_owned(),
                must_call: true,
            })
        } else {
            problem()
        };
        let Some(Unfinished { fact, message, must_call }) = found else { return Ok(AnswerCheck::Finished) };
        if self.asked_again == MAX_ASKED_AGAIN {
            let hint = "ask again in other words, or use a larger model (`kontekst models`)";
            return Err(RunError::new(FailureKind::Model, fact).hint(hint));
        }
        self.asked_again += 1;
        Ok(AnswerCheck::AskAgain { fact, message, must_call })
    }
}

/// Returns true if the answer ends with the announcement of an action: "I will now read the file:".
fn is_announcement(answer: &str) -> bool {
    let answer = answer.trim();
    let last_line = answer.lines().next_back().unwrap_or("").trim();
    let sentence_ends = [". ", "! ", "? ", "… "];
    let start =
        sentence_ends.iter().filter_map(|end| Some(last_line.rfind(end)? + end.len())).max().unwrap_or(0);
    let last = last_line[start..].to_lowercase();
    let Some(rest) = ANNOUNCEMENTS.iter().find_map(|beginning| last.strip_prefix(beginning)) else {
        return false;
    };
    let acts = || rest.split(|c: char| !c.is_alphanumeric()).take(4).any(|word| ACTIONS.contains(&word));
    let is_open = answer.ends_with([':', '…']) || answer.ends_with("...");
    answer.len() <= ANNOUNCEMENT_LIMIT && !rest.starts_with("know") && (is_open || acts())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_recognised_and_answers_are_not() {
        for answer in [
            "I will now read the file:",
            "I'll look at src/main.rs first.",
            "Sure! Let me check the configuration...",
            "The file exists.\n\nNow I will edit it:",
            "Let me fetch the page.",
            "I am going to create the file now.",
            "First, I need to list the files",
        ] {
            assert!(is_announcement(answer), "{answer}");
        }
        for answer in [
            "The meeting is at 14:30.",
            "I will remember that.",
            "I'll be happy to help. What is it about?",
            "Let me know if you need anything else.",
            "Let me know which file to read:",
            "Done. I have changed the port to 9000.",
            "You can use the following command:\n\n    cargo test",
            "I will not do that.",
            "It prints:\n```\nI will read\n```",
            "Let's meet on Friday.",
        ] {
            assert!(!is_announcement(answer), "{answer}");
        }
    }

    #[test]
    fn an_unfinished_answer_is_asked_for_again_twice() {
        let turn = |content: &str| Turn { content: content.to_owned(), ..Turn::default() };
        let mut rail = UnfinishedAnswers::default();
        let check =
            |rail: &mut UnfinishedAnswers, turn: &Turn, has_tools| rail.check(turn, has_tools, || None);
        assert!(matches!(check(&mut rail, &turn("It is 7."), true), Ok(AnswerCheck::Finished)));
        assert!(matches!(check(&mut rail, &turn(" \n"), false), Ok(AnswerCheck::AskAgain { .. })));
        assert!(matches!(check(&mut rail, &turn("Let me read it:"), false), Ok(AnswerCheck::Finished)));
        assert!(matches!(check(&mut rail, &turn("Let me read it:"), true), Ok(AnswerCheck::AskAgain { .. })));
        let error = check(&mut rail, &turn(""), true).err().unwrap();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (FailureKind::Model, "the model gave an empty answer")
        );
        assert!(matches!(check(&mut rail, &turn("It is 7."), true), Ok(AnswerCheck::Finished)));
        let cut = Turn { finish_reason: FinishReason::Length, ..Turn::default() };
        assert!(matches!(check(&mut rail, &cut, true), Ok(AnswerCheck::Finished)));
    }
}
