//! Waits for the decisions on proposed calls.

use std::sync::Arc;

use kontekst_core::{CallId, error_chain};

use crate::{
    bridge::blocking,
    protocol::{AfterDenial, Command, Decision, Event},
    run::Stop,
    run_state::RunState,
};

use super::plan::{CallPlan, PlannedCall};

/// The reason of a denial where the client can ask nobody, and the run cannot be parked.
pub(crate) const NOBODY_TO_ASK: &str = "nobody can be asked about it";

/// The meaning of the decisions on the calls of a turn for the run.
pub(super) struct Decided {
    pub(super) after_denial: AfterDenial,
    /// The calls about which nobody can be asked, by their places in the plan. Empty if a denial ends the run.
    pub(super) to_park: Vec<usize>,
}

/// Waits until every proposed call has a decision, and changes the plan of each call that is denied.
///
/// The first decision on a call counts. Decisions on calls that were not proposed are ignored. If the client
/// closes its side, the remaining calls are denied.
pub(super) async fn collect_decisions(
    run: &mut RunState,
    planned: &mut [PlannedCall],
) -> Result<Decided, Stop> {
    let mut undecided: Vec<usize> =
        (0..planned.len()).filter(|&index| planned[index].needs_approval()).collect();
    let mut after_denial = AfterDenial::Continue;
    let mut to_park = Vec::new();
    while !undecided.is_empty() {
        match next_command(run).await? {
            None => {
                run.handle_command(None);
                for index in undecided.drain(..) {
                    let reason = "nobody was there to approve".to_owned();
                    run.report_decision(planned[index].call.id.clone(), Decision::Denied(reason.clone()))
                        .await?;
                    planned[index].plan = CallPlan::Denied(reason);
                }
                after_denial = AfterDenial::End;
            }
            Some(Command::Approve(call)) => {
                if take_undecided(&mut undecided, planned, &call).is_some() {
                    run.report_decision(call, Decision::Approved).await?;
                }
            }
            Some(Command::ApproveAlways(call)) => {
                if let Some(index) = take_undecided(&mut undecided, planned, &call) {
                    remember(run, &planned[index]).await?;
                    run.report_decision(call, Decision::Approved).await?;
                }
            }
            Some(Command::Deny { call, reason, then }) => {
                if let Some(index) = take_undecided(&mut undecided, planned, &call) {
                    run.report_decision(call, Decision::Denied(reason.clone())).await?;
                    planned[index].plan = CallPlan::Denied(reason);
                    if then == AfterDenial::End {
                        after_denial = AfterDenial::End;
                    }
                }
            }
            Some(Command::Park(call)) => {
                if let Some(index) = take_undecided(&mut undecided, planned, &call) {
                    run.report_decision(call, Decision::Denied(NOBODY_TO_ASK.to_owned())).await?;
                    to_park.push(index);
                }
            }
            Some(other) => run.handle_command(Some(&other)),
        }
    }
    if after_denial == AfterDenial::End || !run.parking.is_possible() {
        after_denial = if to_park.is_empty() { after_denial } else { AfterDenial::End };
        deny_unasked(planned, std::mem::take(&mut to_park));
    }
    Ok(Decided { after_denial, to_park })
}

/// Denies the calls about which nobody can be asked.
pub(super) fn deny_unasked(planned: &mut [PlannedCall], indices: Vec<usize>) {
    for index in indices {
        planned[index].plan = CallPlan::Denied(NOBODY_TO_ASK.to_owned());
    }
}

/// Writes the rules that allow calls like this one in this directory, and says where they stand.
async fn remember(run: &RunState, planned: &PlannedCall) -> Result<(), Stop> {
    let rules = planned.rules();
    if rules.is_empty() {
        return Ok(());
    }
    let policy = Arc::clone(&run.tools.policy);
    let dir = policy.dir().to_owned();
    let text = match blocking(move || policy.allow(&rules)).join().await? {
        Ok(written) => {
            let places = written
                .iter()
                .map(|rule| format!("allow `{}` ({}:{})", rule.text, rule.file.display(), rule.line));
            let places = places.collect::<Vec<_>>().join(", ");
            format!("from now on this needs no question in {dir}: {places}")
        }
        Err(error) => format!("the approval is for this call only: {}", error_chain(&error)),
    };
    run.io.send(Event::Notice(text)).await
}

/// Waits for the next command. Returns `None` if none can come any more.
async fn next_command(run: &mut RunState) -> Result<Option<Command>, Stop> {
    if !run.io.accepts_commands() {
        return Ok(None);
    }
    let interrupted = run.io.interrupted();
    tokio::select! {
        biased;
        () = interrupted => Err(Stop::Cancelled),
        command = run.io.next_command() => Ok(command),
    }
}

/// Removes a call from the undecided ones, and returns its index. `None` if it does not wait for a decision.
fn take_undecided(undecided: &mut Vec<usize>, planned: &[PlannedCall], call: &CallId) -> Option<usize> {
    let position = undecided.iter().position(|&index| planned[index].call.id == *call)?;
    Some(undecided.remove(position))
}
