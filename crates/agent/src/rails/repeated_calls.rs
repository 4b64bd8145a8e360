//! Notices calls that are made again and again with the same result.

use kontekst_core::ToolNature;

use crate::{
    ledger::Ledger,
    run::{FailureKind, RunError},
};

use super::{Judgement, Moment, Rail};

/// The run of a model in steps ends when a call was made this often with the same result, and nothing was changed in between.
const MAX_TIMES: u32 = 4;

/// Follows the result of a call that was made before. A larger model reads no advice: it may wait for something.
const FACT: &str = "[The call and its result are those of before.]";

/// The same for a model in steps.
const NOTE: &str = "[You have made exactly this call before, with the same result. Do the next step, or give your final answer.]";

const HINT: &str = "ask for less at a time, or use a larger model (`kontekst models`)";

/// Notices the same call with the same result. A loop of two or three calls is found as well.
pub(super) struct Repeated {
    /// The model works in steps: it reads advice, and its run ends in the end. A command may be repeated to wait for something,
    /// so it never ends a run.
    pub(super) in_steps: bool,
}

impl Rail for Repeated {
    fn name(&self) -> &'static str {
        "repeated_calls"
    }

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        let Moment::Result { call, nature } = moment else { return Judgement::Pass };
        let times = ledger.repetitions();
        if self.in_steps && *nature != ToolNature::Runs && times >= MAX_TIMES {
            let tool = &call.name;
            let message = format!(
                "the model called {tool} {MAX_TIMES} times with the same arguments and the same result"
            );
            return Judgement::End(RunError::new(FailureKind::Limit, message).hint(HINT));
        }
        let note = if self.in_steps { NOTE } else { FACT };
        if times > 1 { Judgement::Note(note.to_owned()) } else { Judgement::Pass }
    }
}
