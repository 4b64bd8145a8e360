//! Rails that judge answers: by what the run has done, and by what the model says that it has done.

use kontekst_provider::{FinishReason, Turn};

use crate::{
    ledger::Ledger,
    run::{FailureKind, RunError},
};

use super::{Answer, Judgement, Moment, Rail};

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

/// Notices files that the model says it has changed, and that are as they were.
pub(super) struct Claims;

impl Rail for Claims {
    fn name(&self) -> &'static str {
        "claims"
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
