//! Notices calls that are made again and again with the same result, and tools whose calls fail again and again.

use super::{Judgement, Moment, Rail};
use crate::{
    agent::{
        ledger::Ledger,
        protocol::{FailureKind, RunError},
    },
    core::{ToolDef, ToolNature},
    tools::schema::usage,
};

/// The run of a model in steps ends when a call was made this often with the same result, and nothing was changed in between,
/// or when it failed in so many turns in a row.
const MAX_TIMES: u32 = 4;

/// Follows the result of a call that was made before. The model reads it.
const NOTE: &str = "[You have made exactly this call before, with the same result. Do the next step, or give your final answer.]";

/// The maximum number of tools that are described to a model that calls one that does not exist.
const MAX_TOOLS: usize = 12;

const HINT: &str = "ask for less at a time, or use a larger model (`kontekst models`)";

/// Notices the same call with the same result. A loop of two or three calls is found as well.
pub(super) struct Repeated {
    /// The run ends in the end. A command may be repeated to wait for something, so it never ends a run.
    pub(super) ends: bool,
}

impl Rail for Repeated {
    fn name(&self) -> &'static str {
        "repeated_calls"
    }

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        let Moment::Result { call, nature } = moment else { return Judgement::Pass };
        let times = ledger.repetitions();
        if self.ends && *nature != ToolNature::Runs && times >= MAX_TIMES {
            let tool = &call.name;
            let message = format!(
                "the model called {tool} {MAX_TIMES} times with the same arguments and the same result"
            );
            return Judgement::End(RunError::new(FailureKind::Limit, message).hint(HINT));
        }
        if times > 1 { Judgement::Note(NOTE.to_owned()) } else { Judgement::Pass }
    }
}

/// Ends the run of a model whose calls of one tool fail at the same file again and again.
pub(super) struct Failing;

impl Rail for Failing {
    fn name(&self) -> &'static str {
        "failing_calls"
    }

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        let Moment::Result { call, .. } = moment else { return Judgement::Pass };
        if ledger.failures_in_a_row() < MAX_TIMES {
            return Judgement::Pass;
        }
        let message = format!("the model called {} in {MAX_TIMES} turns in a row without success", call.name);
        Judgement::End(RunError::new(FailureKind::Limit, message).hint(HINT))
    }
}

/// Returns what a model reads after `failures` failures in a row: how the tool is called, and from the third on that
/// another way is better. `tool` is `None` if it called a tool that does not exist.
pub(in crate::agent) fn help(tool: Option<&str>, tools: &[ToolDef], failures: u32) -> String {
    if failures < 2 {
        return String::new();
    }
    let called = tools.iter().filter(|def| tool.is_none_or(|name| def.name == name)).take(MAX_TOOLS);
    let usages: Vec<String> = called.map(usage).collect();
    let mut text = format!("Call it like this:\n{}", usages.join("\n"));
    if tool.is_none() {
        text = format!("These are all the tools:\n{}", usages.join("\n"));
    }
    if failures > 2 {
        text.push_str(
            "\nDo not make the same call again. Try another way, or give your final answer and say what is in the way.",
        );
    }
    text
}
