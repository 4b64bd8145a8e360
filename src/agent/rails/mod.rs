//! Rails: checks that notice when a model goes round in circles or stops before it is done. Small models do both.
//!
//! The model is told first. If that does not help, the run fails with the reason, because an ending that is not what was
//! asked for must not look like one that is.

mod repeated_calls;
mod unfinished_answers;

pub(super) use repeated_calls::RepeatedCalls;
pub(super) use unfinished_answers::{AnswerCheck, UnfinishedAnswers};

/// The rails of one run.
#[derive(Default)]
pub(super) struct Rails {
    pub(super) repeated_calls: RepeatedCalls,
    pub(super) unfinished_answers: UnfinishedAnswers,
}
