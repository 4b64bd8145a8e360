//! The facts about a run that is over, gathered from its events.

mod result_json;
mod usage;

use std::collections::HashMap;

use kontekst_pb::{self as pb, run_command::Command, run_event::Event};

use super::approver::NO_TERMINAL;

pub(super) use usage::Usage;

/// Everything that is known about a run when it is over, but its last event.
#[derive(Default)]
pub(super) struct RunReport {
    run_id: String,
    session_id: String,
    agent: String,
    /// The model of the last answer. Empty if it is unknown.
    model: String,
    /// The answer, if the run has completed.
    answer: Option<String>,
    /// The daemon has cancelled the run, or did so because the user wanted it.
    is_cancelled: bool,
    calls: Vec<CallReport>,
    /// The calls that were proposed and have no result yet, by their ids, also those of workers.
    proposed: HashMap<String, pb::ProposedToolCall>,
    denied: Vec<DeniedCall>,
    checks: Vec<pb::CheckEvent>,
    checks_passed: Option<bool>,
    /// The facts of the run. `None` if it never began.
    facts: Option<pb::RunFactsEvent>,
    /// The name under which the run is parked. Empty if it is not.
    parked_run_id: String,
}

/// A call of the run's own model.
struct CallReport {
    call: pb::ToolCall,
    outcome: CallOutcome,
    /// The error of a call that has failed.
    error: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOutcome {
    Completed,
    Failed,
    Denied,
    /// The run has ended before the call had a result.
    Unfinished,
}

/// A call that was denied: by this client, by a person, or elsewhere.
struct DeniedCall {
    call: pb::ProposedToolCall,
    /// Empty if another client has denied it.
    reason: String,
}

impl RunReport {
    /// Takes notice of an event of the run.
    pub(super) fn observe(&mut self, event: &Event) {
        match event {
            Event::Started(started) => {
                started.run_id.clone_into(&mut self.run_id);
                started.session_id.clone_into(&mut self.session_id);
                started.agent_name.clone_into(&mut self.agent);
            }
            Event::TurnCompleted(turn) => {
                turn.model.clone_into(&mut self.model);
                self.calls.extend(turn.calls.iter().map(CallReport::new));
            }
            Event::ToolsProposed(proposed) => {
                let calls = proposed.calls.iter().map(|call| (call.call_id.clone(), call.clone()));
                self.proposed.extend(calls);
            }
            Event::ToolDecided(decided) if !decided.approved && !decided.withdrawn => {
                self.deny(&decided.call_id, "");
            }
            Event::ToolCompleted(call) => self.end_call(&call.call_id, CallOutcome::Completed, ""),
            Event::ToolFailed(call) => self.end_call(&call.call_id, CallOutcome::Failed, &call.error),
            Event::Check(check) if check.finished => self.checks.push(check.clone()),
            Event::Facts(facts) => self.facts = Some(facts.clone()),
            Event::Completed(completed) => {
                self.answer = Some(completed.content.clone());
                self.checks_passed = completed.checks_passed;
            }
            Event::Cancelled(cancelled) => {
                self.is_cancelled = !cancelled.denied;
                cancelled.parked_run_id.clone_into(&mut self.parked_run_id);
            }
            _ => {}
        }
    }

    /// Takes notice of a command that this client sends.
    pub(super) fn observe_command(&mut self, command: &Command) {
        match command {
            Command::DenyTool(deny) => self.deny(&deny.call_id, &deny.reason),
            Command::ParkTool(park) => self.deny(&park.call_id, NO_TERMINAL),
            _ => {}
        }
    }

    fn deny(&mut self, call_id: &str, reason: &str) {
        let Some(call) = self.proposed.remove(call_id) else { return };
        if call.worker_id.is_empty() {
            self.end_call(call_id, CallOutcome::Denied, "");
        }
        self.denied.push(DeniedCall { call, reason: reason.to_owned() });
    }

    /// Notes the end of the last call with this id, which only the calls of one answer do not share.
    fn end_call(&mut self, call_id: &str, outcome: CallOutcome, error: &str) {
        self.proposed.remove(call_id);
        if let Some(call) = self.calls.iter_mut().rfind(|call| call.call.call_id == call_id) {
            call.outcome = outcome;
            error.clone_into(&mut call.error);
        }
    }
}

impl CallReport {
    fn new(call: &pb::ToolCall) -> Self {
        Self { call: call.clone(), outcome: CallOutcome::Unfinished, error: String::new() }
    }
}
