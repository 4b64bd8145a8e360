//! Rails that judge answers: by what the run has done, and by what the model says that it has done.

use super::{Answer, Judgement, Moment, Rail};
use crate::{
    agent::{
        ledger::Ledger,
        protocol::{FailureKind, RunError},
    },
    provider::{FinishReason, Turn},
};

/// Returns the answer, unless it was cut at its token limit. Such an answer has an ending of its own.
fn whole<'a>(moment: &'a Moment<'_>) -> Option<&'a Answer<'a>> {
    match moment {
        Moment::Answer(answer) if answer.turn.finish_reason != FinishReason::Length => Some(answer),
        _ => None,
    }
}

fn failure(fact: &str) -> RunError {
    RunError::new(FailureKind::Model, fact)
        .hint("ask again in other words, or use a larger model (`kontekst models`)")
}

/// Notices answers without text.
pub(super) struct Empty {
    /// The model is asked again. Otherwise the run fails at once.
    pub(super) asks: bool,
}

impl Rail for Empty {
    fn name(&self) -> &'static str {
        "empty_answer"
    }

    fn judge(&mut self, moment: &Moment<'_>, _: &Ledger) -> Judgement {
        let Some(Answer { turn: Turn { content, finish_reason, .. }, .. }) = whole(moment) else {
            return Judgement::Pass;
        };
        if !content.trim().is_empty() {
            return Judgement::Pass;
        }
        let (fact, message) = match finish_reason {
            FinishReason::Repetition => (
                "the model repeated itself",
                "You wrote the same text again and again and were stopped. Take the next step, or give a short answer.",
            ),
            _ => ("the model's answer is empty", "Your answer was empty. Give your answer now."),
        };
        Judgement::AskAgain {
            fact: fact.to_owned(),
            message: message.to_owned(),
            times: if self.asks { 2 } else { 0 },
            failure: Some(failure(fact)),
        }
    }
}

/// The name of the rails that ask about something that was not done. The model is asked about that once, by one of them.
const NOTHING_DONE: &str = "nothing_done";

/// Notices files that the model says it has changed, and that are as they were.
pub(super) struct Claims;

impl Rail for Claims {
    fn name(&self) -> &'static str {
        NOTHING_DONE
    }

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        let Some(Answer { claims: Some(claims), .. }) = whole(moment) else { return Judgement::Pass };
        if !ledger.is_complete() {
            return Judgement::Pass;
        }
        let changed = ledger.changed_files();
        let is_name = |claim: &&str| claim.contains(['.', '/']) && !claim.contains(char::is_whitespace);
        let names = claims.iter().map(|claim| claim.trim().trim_start_matches("./").trim_end_matches('/'));
        let is_true = |claim: &str| {
            let is_in = |path: &String| {
                path == claim || path.strip_prefix(claim).is_some_and(|rest| rest.starts_with('/'))
            };
            changed.iter().any(is_in) || changed.iter().any(|path| claim.ends_with(&format!("/{path}")))
        };
        let wrong: Vec<&str> = names.filter(is_name).filter(|claim| !is_true(claim)).collect();
        if wrong.is_empty() {
            return Judgement::Pass;
        }
        let wrong = wrong.join(", ");
        let fact = format!("the model says that it has changed {wrong}, and that is as it was");
        Judgement::AskAgain {
            message: format!(
                "You say that {wrong} was changed, and it is as it was before. Take the step that is missing. If nothing has to \
                 be changed there, or it cannot be done, call answer and say so."
            ),
            failure: Some(failure(&fact)),
            fact,
            times: 1,
        }
    }
}

/// Notices that a model which has said that there is work to do ends without having done anything, and without having found that
/// it is so already.
pub(super) struct Idle;

impl Rail for Idle {
    fn name(&self) -> &'static str {
        NOTHING_DONE
    }

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        if !whole(moment).is_some_and(|answer| answer.is_of_work)
            || ledger.has_acted()
            || ledger.has_found_it_so()
        {
            return Judgement::Pass;
        }
        Judgement::AskAgain {
            fact: "no file was changed and no command was run".to_owned(),
            message: "No file has been changed and no command has run. If the request wants that, take the step now. If nothing \
                      has to be done, or it cannot be done, call answer and say so."
                .to_owned(),
            times: 1,
            failure: None,
        }
    }
}

/// Notices an answer after a change that left a file which does not parse any more.
pub(super) struct Broken;

impl Rail for Broken {
    fn name(&self) -> &'static str {
        "broken_file"
    }

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        let (Some(_), Some((path, error))) = (whole(moment), ledger.broken_file()) else {
            return Judgement::Pass;
        };
        let error = super::change_notes::in_words(path, error);
        Judgement::AskAgain {
            message: format!("Since your change {error}. Correct it now."),
            fact: error,
            times: 2,
            failure: None,
        }
    }
}

/// Notices that some of the files that the request names were changed, and others were not.
pub(super) struct Left;

impl Rail for Left {
    fn name(&self) -> &'static str {
        "left_files"
    }

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        let Some(Answer { is_of_work: true, named, .. }) = whole(moment) else { return Judgement::Pass };
        let changed = ledger.changed_files();
        let left: Vec<&str> =
            named.iter().filter(|path| !changed.contains(path)).map(String::as_str).collect();
        if changed.is_empty() || left.is_empty() || !ledger.is_complete() {
            return Judgement::Pass;
        }
        let (changed, left) = (changed.join(", "), left.join(", "));
        Judgement::AskAgain {
            fact: format!("{left} was not changed"),
            message: format!(
                "Changed: {changed}. Not changed: {left}. If the request wants a change there too, make it now. Otherwise answer \
                 once more."
            ),
            times: 1,
            failure: None,
        }
    }
}
