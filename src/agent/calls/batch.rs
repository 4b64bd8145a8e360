//! Runs the calls of a turn: proposes them, waits for the decisions, and runs them in the model's order.

use crate::{
    agent::{
        protocol::{AfterDenial, Event, Outcome, ProposedCall},
        request::ApprovalBatching,
        run::Stop,
        run_checks,
        run_state::RunState,
        subagent::run_subagents,
    },
    tools::ToolBox,
};

use super::{
    approval::collect_decisions,
    check::{CheckedCalls, TurnCall},
    execute::{run_at_client, run_call},
    plan::{CallGroup, PlannedCall, next_group, plan_calls},
    write_guard::turn_back_writes,
};

/// Proposes, decides and runs the calls of a turn. Returns the outcome of the run if a denial ends it.
pub(in crate::agent) async fn run_calls(
    run: &mut RunState,
    checked: CheckedCalls,
) -> Result<Option<Outcome>, Stop> {
    let CheckedCalls { calls, tools } = checked;
    let batch_size = match run.tools.approvals {
        ApprovalBatching::WholeTurn => calls.len(),
        ApprovalBatching::OneByOne => 1,
    };
    let mut calls = calls.into_iter();
    let mut after_denial = AfterDenial::Continue;
    loop {
        let batch: Vec<TurnCall> = calls.by_ref().take(batch_size).collect();
        if batch.is_empty() {
            break;
        }
        match run_batch(run, batch, &tools).await {
            Ok(AfterDenial::Continue) => {}
            Ok(AfterDenial::End) => after_denial = AfterDenial::End,
            Err(stop) => {
                run.push_unstarted(calls.map(|call| call.call)).await;
                return Err(stop);
            }
        }
    }
    run.io.send(Event::ToolsCompleted).await?;
    Ok((after_denial == AfterDenial::End).then_some(Outcome::Denied))
}

/// Proposes, decides and runs the calls that are proposed together.
async fn run_batch(run: &mut RunState, calls: Vec<TurnCall>, tools: &ToolBox) -> Result<AfterDenial, Stop> {
    let mut planned = plan_calls(run, calls, tools.clone()).await?;
    turn_back_writes(run, &mut planned).await?;
    let proposed: Vec<ProposedCall> = planned.iter().filter_map(PlannedCall::proposed).collect();
    let mut after_denial = AfterDenial::Continue;
    if !proposed.is_empty() {
        run.add_pending(&proposed);
        run.io.send(Event::ToolsProposed(proposed)).await?;
        let decided = collect_decisions(run, &mut planned).await;
        run.io.pending.clear();
        after_denial = match decided {
            Ok(after_denial) => after_denial,
            Err(stop) => {
                run.push_unstarted(planned.into_iter().map(|planned| planned.call)).await;
                return Err(stop);
            }
        };
    }
    let mut planned = planned.into_iter().peekable();
    while let Some(group) = next_group(&mut planned) {
        match run_group(run, group).await {
            Ok(AfterDenial::Continue) => {}
            Ok(AfterDenial::End) => after_denial = AfterDenial::End,
            Err(stop) => {
                run.push_unstarted(planned.map(|planned| planned.call)).await;
                return Err(stop);
            }
        }
    }
    Ok(after_denial)
}

async fn run_group(run: &mut RunState, group: CallGroup) -> Result<AfterDenial, Stop> {
    if matches!(group, CallGroup::Client(_) | CallGroup::Subagents(_)) {
        // Nothing is known about their effects.
        run.rails.note_decision();
    }
    match group {
        CallGroup::One(call) => run_call(run, *call).await?,
        CallGroup::Client(calls) => run_at_client(run, calls).await?,
        CallGroup::Subagents(calls) => {
            run_checks::run_before_change(run).await?;
            run.checks.note_change();
            return run_subagents(run, &calls).await;
        }
    }
    Ok(AfterDenial::Continue)
}
