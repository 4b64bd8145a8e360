//! Notices answers that only copy what the model was told: the request, the reminder of it, or the note of a rail.

use super::{
    change_request::last_paragraph, file_changes, missing_change, repeated_calls, unfinished_answers,
    unfinished_answers::Unfinished,
};
use crate::provider::{REMINDER, REMINDER_AFTER_CHANGE, RESULT_OF};

/// A shorter text may be an answer of its own, such as "Hello!", in bytes and in words.
const MIN_BYTES: usize = 20;
const MIN_WORDS: usize = 4;

/// The longest request that is compared, in bytes.
const MAX_REQUEST: usize = 2000;

/// Words of a request whose answer may be its own text, in lower case.
const REPEATING: [&str; 13] = [
    "repeat",
    "print",
    "echo",
    "say",
    "quote",
    "output",
    "copy",
    "translate",
    "correct",
    "proofread",
    "wiederhol",
    "sag",
    "grammar",
];

const MESSAGE: &str = "Your answer only repeats what you were told.";
const CALL: &str = "Take the next step.";
const CALL_OR_SAY: &str = "Take the next step, or say in your own words what was found or done.";

/// The request of the user, for comparison.
#[derive(Default)]
pub(super) struct CopiedAnswers {
    /// The request in the form of [`normal`], and without data from stdin. Empty if it may be an answer.
    request: String,
}

impl CopiedAnswers {
    pub(super) fn new(prompt: &str) -> Self {
        let instruction = last_paragraph(prompt);
        if instruction.len() > MAX_REQUEST {
            return Self::default();
        }
        let request = normal(instruction);
        let is_short = request.len() < MIN_BYTES || request.split(' ').count() < MIN_WORDS;
        let may_be_repeated =
            request.split(' ').any(|word| REPEATING.iter().any(|verb| word.starts_with(verb)));
        Self { request: if is_short || may_be_repeated { String::new() } else { request } }
    }

    /// Judges an answer. The request may be an answer after a change of files: "Set RATE to 25." says what was done. The
    /// next answer must call a tool if `lacks_change`: a file was to be changed, and none was.
    pub(super) fn check(&self, answer: &str, files_differ: bool, lacks_change: bool) -> Option<Unfinished> {
        if answer.len() > 2 * MAX_REQUEST {
            return None;
        }
        let answer = normal(answer);
        let reminders = [REMINDER, REMINDER_AFTER_CHANGE].map(normal);
        let notes = [
            missing_change::NOTE,
            repeated_calls::NOTE,
            unfinished_answers::EMPTY,
            unfinished_answers::ANNOUNCED,
            file_changes::REPAIR,
            file_changes::REPAIR_OR_SAY,
        ];
        let is_request = !files_differ
            && !self.request.is_empty()
            && ["", "request: ", "the request: ", "the request was: "]
                .iter()
                .any(|before| answer.strip_prefix(before) == Some(&*self.request));
        let is_head = answer
            .strip_prefix(&*normal(RESULT_OF))
            .is_some_and(|name| name.len() < 64 && !name.trim_start().contains(' '));
        let is_copy = is_request
            || is_head
            || reminders.iter().any(|reminder| answer.starts_with(reminder))
            || notes.iter().any(|note| answer == normal(note));
        is_copy.then(|| Unfinished {
            fact: "the model repeated what it was told instead of an answer".to_owned(),
            message: format!("{MESSAGE} {}", if lacks_change { CALL } else { CALL_OR_SAY }),
            must_call: lacks_change,
        })
    }
}

/// Returns true if an answer after a change of files says nothing of its own: it consists of the request and the reminder of it,
/// or is a part of the last thing that the model was told.
pub(super) fn only_repeats(answer: &str, last_read: &str) -> bool {
    let text = normal(answer);
    let read = normal(last_read);
    if text.len() < MIN_BYTES || text.split(' ').count() < MIN_WORDS {
        return false;
    }
    let reminders = [REMINDER, REMINDER_AFTER_CHANGE].map(normal);
    read.contains(&text) || reminders.iter().any(|reminder| text.contains(&**reminder))
}

/// Returns the text in lower case with single spaces, and without quotes and brackets around it.
fn normal(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").to_lowercase();
    text.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | '[' | ']' | '.' | '!')).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_a_part_of_the_last_message_says_nothing_of_its_own() {
        let read = "Successfully wrote 27 bytes to a.json\n\na.json has 2 lines now.";
        for answer in [
            "Successfully wrote 27 bytes to a.json\na.json has 2 lines now.",
            &format!("The request: Fix it. {REMINDER_AFTER_CHANGE} Fix it."),
        ] {
            assert!(only_repeats(answer, read), "{answer}");
        }
        for answer in ["2 lines", "I wrote two lines to a.json.", "", "a.json has 3 lines now, as you wished"]
        {
            assert!(!only_repeats(answer, read), "{answer}");
        }
    }

    #[test]
    fn copies_are_found_and_answers_are_not() {
        let request = "data\n\nReplace  one with two in a.txt.";
        for answer in [
            "replace one with two in a.txt",
            "The request: Replace one with two in a.txt.",
            "\"Replace one with\ntwo in a.txt\"",
            REMINDER,
            &format!("{REMINDER_AFTER_CHANGE} Replace one with two in a.txt."),
            "Result of edit_file:",
            missing_change::NOTE,
            file_changes::REPAIR_OR_SAY,
        ] {
            assert!(CopiedAnswers::new(request).check(answer, false, false).is_some(), "{answer}");
        }
        let rail = CopiedAnswers::new(request);
        assert!(
            rail.check("Replace one with two in a.txt.", true, false).is_none(),
            "it may say what was done"
        );
        assert!(rail.check(REMINDER, true, false).is_some());
        for answer in ["I replaced one with two in a.txt.", "Done.", "Result of the count: 7", "8080"] {
            assert!(CopiedAnswers::new(request).check(answer, false, false).is_none(), "{answer}");
        }
        for request in ["hello", "Repeat: the cat sat on the mat", "print the line the cat sat here"] {
            assert!(CopiedAnswers::new(request).check(request, false, false).is_none(), "{request}");
        }
    }
}
