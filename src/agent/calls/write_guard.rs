//! Turns back writes of whole files, and edits of several places, before anybody is asked about them.

use std::sync::Arc;

use super::plan::{CallPlan, DaemonCall, PlannedCall};
use crate::{
    agent::{
        bridge::blocking,
        rails::{EDIT_FILE, WRITE_FILE},
        run::Stop,
        run_state::RunState,
    },
    tools::Effect,
};

/// Replaces the plan of each write and each edit that is turned back. The model reads the reason, and where reading is
/// free, the file if it is small.
pub(super) async fn turn_back_writes(run: &mut RunState, planned: &mut [PlannedCall]) -> Result<(), Stop> {
    if !run.rails.config.write_guard {
        return Ok(());
    }
    for PlannedCall { call, plan } in planned.iter_mut() {
        let CallPlan::Daemon(DaemonCall { tool, args, proposal, .. }) = plan else { continue };
        let Effect::Change(change) = &proposal.effect else { continue };
        let ids = (&call.id, run.messages.recorder.run());
        let reason = match call.name.as_str() {
            WRITE_FILE => run.rails.write_guard.judge(change, ids, &run.messages.window.iter()),
            EDIT_FILE => run.rails.all_places.judge(change, args),
            _ => None,
        };
        let Some(reason) = reason else { continue };
        if !run.tools.reading_is_free {
            *plan = CallPlan::TurnedBack(reason);
            continue;
        }
        let (tool, args, work_dir) = (Arc::clone(tool), args.clone(), Arc::clone(&run.tools.work_dir));
        let help = blocking(move || tool.help(&args, &work_dir, 0)).join().await?;
        *plan = CallPlan::TurnedBack(format!("{reason}\n{help}").trim_end().to_owned());
    }
    Ok(())
}
