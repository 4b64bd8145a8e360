//! Rails: rules that notice when a model goes round in circles or stops before it is done. Small models do both.
//!
//! A rail judges by facts: what the run has done, and what the model says about it. The words of
//! the request decide nothing. A model that does not work in steps is told facts and is never stopped.

mod answers;
mod changed_place;
mod repeated_calls;
mod repeated_text;
mod thinking_budget;

use std::collections::HashMap;

use kontekst_core::{ToolCall, ToolNature};
use kontekst_provider::Turn;
use kontekst_store::config::RailsConfig;

use crate::{ledger::Ledger, run::RunError};

pub(crate) use changed_place::changed_place;
pub(crate) use repeated_text::{RepeatedText, may_want_repetition, without_repetitions};
pub(crate) use thinking_budget::ThinkingBudget;

/// Something that a rail judges.
pub(crate) enum Moment<'a> {
    /// A call that the daemon has answered. It is the last one in the ledger.
    Result { call: &'a ToolCall, nature: ToolNature },
    /// An answer without calls.
    Answer(Answer<'a>),
}

/// An answer without calls.
pub(crate) struct Answer<'a> {
    pub(crate) turn: &'a Turn,
    /// The files that the model says it has changed, if it ended its task with such a list.
    pub(crate) claims: Option<&'a [String]>,
}

/// The judgement of a rail.
pub(crate) enum Judgement {
    Pass,
    /// The model reads this with the result.
    Note(String),
    /// The model reads this message and answers again. `fact` says to the user why.
    AskAgain {
        fact: String,
        message: String,
        /// The number of times that the rail may ask in a run.
        times: u32,
        /// The failure of the run when it has asked so often. `None` accepts the answer.
        failure: Option<RunError>,
    },
    End(RunError),
}

/// One rule.
trait Rail: Send + Sync {
    /// The name under which the times are counted that the rail has asked again.
    fn name(&self) -> &'static str;

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement;
}

/// The rails of one run.
pub(crate) struct Rails {
    /// The keys of the agent. A rail that is off is not asked.
    pub(crate) config: RailsConfig,
    rails: Vec<Box<dyn Rail>>,
    /// The number of times that each rail has asked the model again, by its name.
    asked: HashMap<&'static str, u32>,
    /// The reason for which a rail ends the run after the calls of this turn.
    end: Option<RunError>,
}

impl Rails {
    /// `in_steps` says that the model works in steps, as small models do.
    pub(crate) fn new(config: RailsConfig, in_steps: bool) -> Self {
        let mut rails: Vec<Box<dyn Rail>> = vec![Box::new(answers::Empty { asks: config.unfinished })];
        let mut add = |is_on: bool, rail: Box<dyn Rail>| rails.extend(is_on.then_some(rail));
        add(config.repeats, Box::new(repeated_calls::Repeated { in_steps }));
        add(config.unfinished && in_steps, Box::new(answers::Claims));
        Self { config, rails, asked: HashMap::new(), end: None }
    }

    /// Returns the first judgement that is not [`Judgement::Pass`]. A rail that has asked too often accepts the answer, or ends
    /// the run.
    pub(crate) fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        for rail in &mut self.rails {
            match rail.judge(moment, ledger) {
                Judgement::Pass => {}
                Judgement::AskAgain { fact, message, times, failure } => {
                    let asked = self.asked.entry(rail.name()).or_default();
                    if *asked < times {
                        *asked += 1;
                        return Judgement::AskAgain { fact, message, times, failure };
                    }
                    if let Some(failure) = failure {
                        return Judgement::End(failure);
                    }
                }
                verdict => return verdict,
            }
        }
        Judgement::Pass
    }

    /// Judges a call that the daemon has answered. Returns what the model reads with the result.
    pub(crate) fn note(&mut self, call: &ToolCall, nature: ToolNature, ledger: &Ledger) -> Option<String> {
        match self.judge(&Moment::Result { call, nature }, ledger) {
            Judgement::Note(note) => Some(note),
            Judgement::End(error) => {
                self.end.get_or_insert(error);
                None
            }
            Judgement::Pass | Judgement::AskAgain { .. } => None,
        }
    }

    /// # Errors
    ///
    /// The reason for which a rail ends the run.
    pub(crate) fn take_end(&mut self) -> Result<(), RunError> {
        self.end.take().map_or(Ok(()), Err)
    }
}
