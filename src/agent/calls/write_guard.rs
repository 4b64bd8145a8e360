//! Turns back writes of whole files, and changes that the request probably does not mean, before anybody is asked about
//! them.

use std::sync::Arc;

use super::plan::{CallPlan, DaemonCall, PlannedCall};
use crate::{
    agent::{
        bridge::blocking,
        rails::{EDIT_FILE, TurnedBack},
        run::Stop,
        run_state::RunState,
    },
    tools::Effect,
};

/// Replaces the plan of each write and each edit that is turned back. The model reads the reason, and where reading is
/// free, what to do instead, or the file if it is small.
pub(super) async fn turn_back_writes(run: &mut RunState, planned: &mut [PlannedCall]) -> Result<(), Stop> {
    if !run.rails.config.write_guard {
        return Ok(());
    }
    let can_edit = run.tools.all.defs().iter().any(|tool| tool.name == EDIT_FILE);
    for PlannedCall { call, plan } in planned.iter_mut() {
        let CallPlan::Daemon(DaemonCall { tool, args, proposal, .. }) = plan else { continue };
        let Effect::Change(change) = &proposal.effect else { continue };
        // It was not turned back before the run was parked, and a person decides about it now.
        if run.parking.parked_call(&call.id).is_some_and(|parked| parked.waits) {
            continue;
        }
        let ids = (&*call, &*args, run.messages.recorder.run());
        let judged = run.rails.judge_proposal(change, ids, &run.messages.window.iter(), can_edit);
        let Some(TurnedBack { fact, advice }) = judged else { continue };
        if !run.tools.reading_is_free {
            *plan = CallPlan::TurnedBack(fact);
            continue;
        }
        let (tool, args, work_dir) = (Arc::clone(tool), args.clone(), Arc::clone(&run.tools.work_dir));
        // Empty if the file must not be shown without a question.
        let file = blocking(move || tool.help(&args, &work_dir, 0)).join().await?;
        let text = match advice.filter(|_| !file.is_empty()) {
            Some(advice) => format!("{fact} {advice}"),
            None => format!("{fact}\n{file}"),
        };
        *plan = CallPlan::TurnedBack(text.trim_end().to_owned());
    }
    Ok(())
}
