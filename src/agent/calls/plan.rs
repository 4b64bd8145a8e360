//! Decides who runs each call, and which calls run together.

use std::{iter::Peekable, sync::Arc, time::Duration, vec};

use serde_json::Value;

use crate::{
    agent::{
        bridge::blocking, protocol::ProposedCall, request::SPAWN_WORKER, run::Stop, run_state::RunState,
    },
    core::ToolCall,
    tools::{
        Concurrency, Effect, Executor, Proposal, Tool, ToolBox, WorkDir,
        schema::{CheckedCall, InvalidCall},
    },
};

use super::check::TurnCall;

/// A call, and what is done about it. Its name and arguments are those that are shown and run; the model
/// reads its call again as it wrote it.
pub(super) struct PlannedCall {
    pub(super) call: ToolCall,
    pub(super) plan: CallPlan,
}

pub(super) enum CallPlan {
    /// The daemon runs it, after an approval if the tool needs one.
    Daemon(DaemonCall),
    /// The client runs it.
    Client { timeout: Duration, concurrency: Concurrency },
    /// It cannot be run. The model reads the reason.
    Invalid(InvalidCall),
    /// It is not run for this reason, which the model reads.
    TurnedBack(String),
    /// The user denied it. The model reads the reason.
    Denied(String),
}

pub(super) struct DaemonCall {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) args: Value,
    pub(super) proposal: Proposal,
    /// A call that would fail is run without a question. The reason can show a part of a file, so that is so only where
    /// reading is.
    pub(super) fails_unasked: bool,
}

/// Planned calls that are run together.
pub(super) enum CallGroup {
    One(Box<PlannedCall>),
    /// Calls that the client may run at the same time.
    Client(Vec<PlannedCall>),
    /// Calls that start subagents.
    Subagents(Vec<(ToolCall, Value)>),
}

impl PlannedCall {
    /// Returns the proposal of a call that needs an approval.
    pub(super) fn proposed(&self) -> Option<ProposedCall> {
        let CallPlan::Daemon(DaemonCall { proposal, .. }) = &self.plan else { return None };
        self.needs_approval().then(|| ProposedCall {
            call: self.call.clone(),
            preview: proposal.preview.clone(),
            caution: proposal.caution.clone(),
            effect: proposal.effect.clone(),
            command: proposal.command.clone(),
            subagent: None,
        })
    }

    /// Returns true if somebody has to approve the call. A call that would fail changes nothing, also if its target
    /// has changed since.
    pub(super) fn needs_approval(&self) -> bool {
        let CallPlan::Daemon(DaemonCall { tool, proposal, fails_unasked, .. }) = &self.plan else {
            return false;
        };
        let is_unasked = match proposal.effect {
            Effect::Refused(_) => true,
            Effect::Fails(_) => *fails_unasked,
            Effect::Unknown | Effect::Reads | Effect::Change(_) => false,
        };
        let is_allowed = proposal.command.as_ref().is_some_and(|command| command.allowed);
        tool.needs_approval() && !is_unasked && !is_allowed
    }

    /// Returns true if the client may run the call while it runs others.
    fn is_concurrent(&self) -> bool {
        matches!(self.plan, CallPlan::Client { concurrency: Concurrency::Parallel, .. })
    }

    fn starts_subagent(&self) -> bool {
        self.call.name == SPAWN_WORKER && matches!(self.plan, CallPlan::Daemon(_))
    }
}

/// Decides for each call who runs it, and reads its preview from the files as they are now.
pub(super) async fn plan_calls(
    run: &RunState,
    calls: Vec<TurnCall>,
    tools: ToolBox,
) -> Result<Vec<PlannedCall>, Stop> {
    let (work_dir, fails_unasked) = (Arc::clone(&run.tools.work_dir), run.tools.reading_is_free);
    let plan = move |call| plan_call(call, &tools, &work_dir, fails_unasked);
    let mut planning = blocking(move || calls.into_iter().map(plan).collect());
    Ok(run.io.unless_cancelled(planning.join()).await??)
}

fn plan_call(
    TurnCall { call, result }: TurnCall,
    tools: &ToolBox,
    work_dir: &WorkDir,
    fails_unasked: bool,
) -> PlannedCall {
    let CheckedCall { name, args, arguments } = match result {
        Ok(checked) => checked,
        Err(invalid) => return PlannedCall { call, plan: CallPlan::Invalid(invalid) },
    };
    let plan = match tools.find(&name).expect("the call was checked against these tools") {
        Executor::Client { timeout, concurrency } => {
            CallPlan::Client { timeout: *timeout, concurrency: *concurrency }
        }
        Executor::Daemon(tool) => {
            let proposal = tool.propose(&args, work_dir);
            CallPlan::Daemon(DaemonCall { tool: Arc::clone(tool), args, proposal, fails_unasked })
        }
    };
    PlannedCall { call: ToolCall { id: call.id, name, arguments }, plan }
}

/// Takes the next calls that are run together. Only neighbours form a group, because calls run in the model's
/// order.
pub(super) fn next_group(planned: &mut Peekable<vec::IntoIter<PlannedCall>>) -> Option<CallGroup> {
    let first = planned.next()?;
    if first.is_concurrent() {
        let mut group = vec![first];
        group.extend(std::iter::from_fn(|| planned.next_if(PlannedCall::is_concurrent)));
        return Some(CallGroup::Client(group));
    }
    if first.starts_subagent() {
        let rest = std::iter::from_fn(|| planned.next_if(PlannedCall::starts_subagent));
        let group = std::iter::once(first).chain(rest).filter_map(|planned| match planned.plan {
            CallPlan::Daemon(DaemonCall { args, .. }) => Some((planned.call, args)),
            _ => None,
        });
        return Some(CallGroup::Subagents(group.collect()));
    }
    Some(CallGroup::One(Box::new(first)))
}
