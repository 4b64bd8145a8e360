//! Runs calls in the daemon or at the client, and stores their results.

use std::time::Duration;

use tokio::time::Instant;

use kontekst_core::{CallId, Cancel, ToolCall, ToolFailureKind, ToolOutcome};
use kontekst_tools::{Effect, Proposal};

use crate::{
    bridge::{STOP_LIMIT, blocking},
    protocol::{Command, Event, RunError},
    run::Stop,
    run_checks,
    run_state::RunState,
};

use super::{
    plan::{CallPlan, DaemonCall, PlannedCall},
    result::{CallInDaemon, invalid_call},
};

/// A call that the client runs.
struct ClientCall {
    call: ToolCall,
    timeout: Duration,
    /// `None` until the client has answered or its time is over.
    outcome: Option<ToolOutcome>,
}

/// Says whether a call changes files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileChange {
    None,
    Known,
    /// It is a command that may change any file.
    Unknown,
}

impl FileChange {
    fn of(proposal: &Proposal) -> Self {
        match (&proposal.effect, &proposal.command) {
            (Effect::Change(_), _) => Self::Known,
            (_, Some(command)) if !command.only_reads => Self::Unknown,
            _ => Self::None,
        }
    }
}

/// Runs one call and stores its result.
pub(super) async fn run_call(run: &mut RunState, planned: PlannedCall) -> Result<(), Stop> {
    let PlannedCall { call, plan } = planned;
    let (outcome, for_model) = match plan {
        // The client is not told how a denied call ended. The result is only for the model.
        CallPlan::Denied(reason) => {
            return run
                .push_result(
                    &call,
                    &ToolOutcome::failed(ToolFailureKind::Denied, format!("denied: {reason}")),
                )
                .await;
        }
        CallPlan::Client { .. } => return run_at_client(run, vec![PlannedCall { call, plan }]).await,
        CallPlan::Invalid(invalid) => invalid_call(run, &call, invalid),
        CallPlan::Forbidden(reason) => {
            let outcome = ToolOutcome::failed(ToolFailureKind::Denied, reason);
            (outcome.clone(), outcome)
        }
        CallPlan::Daemon(daemon_call) => {
            let kept = CallInDaemon::new(&daemon_call);
            let change = FileChange::of(&daemon_call.proposal);
            if change != FileChange::None {
                run_checks::run_before_change(run).await?;
            }
            let outcome = run_in_daemon(run, &call, daemon_call).await?;
            if change == FileChange::Unknown || (change == FileChange::Known && !outcome.is_error()) {
                run.checks.note_change();
            }
            let for_model = kept.result_for_model(run, &call, &outcome).await?;
            (outcome, for_model)
        }
    };
    run.push_result(&call, &for_model).await?;
    run.io.send(Event::ToolFinished { call: call.id, name: call.name, outcome }).await
}

async fn run_in_daemon(
    run: &mut RunState,
    call: &ToolCall,
    daemon_call: DaemonCall,
) -> Result<ToolOutcome, Stop> {
    let DaemonCall { tool, args, proposal, .. } = daemon_call;
    if tool.needs_approval() {
        run.messages.recorder.append_tool_start(call.id.clone()).await?;
    }
    run.io.send(Event::ToolStarted { call: call.id.clone(), name: call.name.clone() }).await?;
    let work_dir = run.tools.work_dir.for_call(&call.id, &call.name);
    let cancel = run.io.cancel().child();
    let own_limit = tool.own_time_limit(&args);
    let is_awaited = own_limit.is_some() || FileChange::of(&proposal) != FileChange::None;
    let mut executing = {
        let (cancel, print) = (cancel.clone(), printer(run, call.id.clone(), &cancel));
        blocking(move || tool.execute_printing(&args, &work_dir, &proposal, &cancel, &print))
    };
    let interrupted = run.io.interrupted();
    let timeout = own_limit.map_or(run.tools.timeout, |limit| limit + STOP_LIMIT);
    let timed_out = tokio::time::sleep(timeout);
    tokio::pin!(interrupted, timed_out);
    loop {
        tokio::select! {
            biased;
            () = &mut interrupted => {
                cancel.cancel();
                if is_awaited {
                    // The run ends after what it started, so that an undo finds all of it. Its result is of no use any more.
                    tokio::time::timeout(STOP_LIMIT, executing.join()).await.ok();
                }
                let message = "cancelled while it ran; its outcome is unknown";
                let outcome = ToolOutcome::failed(ToolFailureKind::Cancelled, message);
                run.push_result(call, &outcome).await.ok();
                return Err(Stop::Cancelled);
            }
            outcome = executing.join() => {
                let failed = |error: RunError| ToolOutcome::failed(ToolFailureKind::Other, error.message);
                return Ok(outcome.unwrap_or_else(failed));
            }
            () = &mut timed_out => {
                cancel.cancel();
                let message = format!("timed out after {} s", timeout.as_secs());
                return Ok(ToolOutcome::failed(ToolFailureKind::TimedOut, message));
            }
            command = run.io.next_command() => run.handle_command(command.as_ref()),
        }
    }
}

/// Returns what passes the output of a call on to the client. It drops the output of a call that was cancelled.
fn printer(run: &RunState, call: CallId, cancel: &Cancel) -> impl Fn(String) + Send + Sync + use<> {
    let (events, cancel) = (run.io.events.clone(), cancel.clone());
    move |text| {
        if !cancel.is_cancelled() {
            events.send_blocking(Event::ToolOutput { call: call.clone(), text });
        }
    }
}

/// Lets the client run these calls, all at the same time. Results may come in any order; the model reads them
/// in the order of its calls.
pub(super) async fn run_at_client(run: &mut RunState, planned: Vec<PlannedCall>) -> Result<(), Stop> {
    let mut calls: Vec<ClientCall> = Vec::with_capacity(planned.len());
    for PlannedCall { call, plan } in planned {
        if let CallPlan::Client { timeout, .. } = plan {
            calls.push(ClientCall { call, timeout, outcome: None });
        }
    }
    let waited = wait_for_results(run, &mut calls).await;
    for ClientCall { call, outcome, .. } in calls {
        let has_result = outcome.is_some();
        let outcome = outcome.unwrap_or_else(|| {
            ToolOutcome::failed(ToolFailureKind::Cancelled, "cancelled; its outcome is unknown")
        });
        run.push_result(&call, &outcome).await?;
        if has_result && waited.is_ok() {
            run.io.send(Event::ToolFinished { call: call.id, name: call.name, outcome }).await?;
        }
    }
    waited
}

/// Requests the calls and waits until each has a result: the client's, or a failure when its time is over.
async fn wait_for_results(run: &mut RunState, calls: &mut [ClientCall]) -> Result<(), Stop> {
    for ClientCall { call, timeout, .. } in &*calls {
        let requested = Event::ToolRequested { call: call.clone(), timeout: *timeout, subagent: None };
        run.io.send(requested).await?;
    }
    let requested_at = Instant::now();
    let interrupted = run.io.interrupted();
    tokio::pin!(interrupted);
    loop {
        let shortest = calls.iter().filter(|call| call.outcome.is_none()).map(|call| call.timeout).min();
        let Some(shortest) = shortest else { return Ok(()) };
        if !run.io.accepts_commands() {
            fail_open_calls(calls, |_| Some("the client is gone".to_owned()));
            return Ok(());
        }
        tokio::select! {
            biased;
            () = &mut interrupted => return Err(Stop::Cancelled),
            () = tokio::time::sleep_until(requested_at + shortest) => fail_open_calls(calls, |timeout| {
                (timeout <= shortest)
                    .then(|| format!("the client gave no result within {} s", timeout.as_secs()))
            }),
            command = run.io.next_command() => match command {
                Some(Command::ToolResult { call, outcome }) => set_outcome(calls, &call, outcome),
                other => run.handle_command(other.as_ref()),
            },
        }
    }
}

/// Fails each call without a result for whose timeout `reason` returns a text.
fn fail_open_calls(calls: &mut [ClientCall], reason: impl Fn(Duration) -> Option<String>) {
    for call in calls.iter_mut().filter(|call| call.outcome.is_none()) {
        call.outcome = reason(call.timeout).map(|reason| ToolOutcome::failed(ToolFailureKind::Other, reason));
    }
}

/// Sets the result of a call. The first result counts; a result that was not asked for is ignored.
fn set_outcome(calls: &mut [ClientCall], id: &CallId, outcome: ToolOutcome) {
    if let Some(call) = calls.iter_mut().find(|call| call.outcome.is_none() && call.call.id == *id) {
        call.outcome = Some(outcome);
    }
}
