//! One subagent: starts its run, logs what it does, and reports to its parent.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use kontekst_core::{CallId, Cancel, RunFacts, SessionId, ToolCall, ToolOutcome, error_chain};
use kontekst_store::subagent_log::{
    FailureCause, SubagentEvent, SubagentEventKind, SubagentExit, SubagentLog, SubagentLogError,
};

use crate::{
    run::{Command, Decision, Event, FailureKind, Outcome, Run, StartRun, blocking, receive},
    state::{ParentContext, Shared},
};

use super::report::{ReportSender, SubagentReport, SubagentResult};

/// The number of bytes of a subagent's answer that its parent gets. The parent's window decides how much of them it
/// reads.
const MAX_RESULT_BYTES: usize = 64 * 1024;
/// The number of bytes of a failed subagent's last text that its parent gets.
const MAX_LAST_TEXT_BYTES: usize = 2048;

/// A subagent that is ready to start.
pub(super) struct StartSubagent {
    pub(super) shared: Arc<Shared>,
    /// The subagent's own session.
    pub(super) id: SessionId,
    pub(super) request: StartRun,
    pub(super) parent: Box<ParentContext>,
    pub(super) cancel: Cancel,
    /// The commands of the parent's client. Closed when no more will come.
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) reports: ReportSender,
}

/// A subagent that runs.
struct Subagent {
    id: SessionId,
    parent: SessionId,
    log: Arc<SubagentLog>,
    reports: ReportSender,
    /// `None` once no more commands can come.
    commands: Option<mpsc::UnboundedReceiver<Command>>,
    /// The subagent's own calls that wait for a decision.
    undecided: HashSet<CallId>,
    turns: u32,
    /// The text of its last turn that had any.
    last_text: String,
    /// The facts of its run. `None` until its end.
    facts: Option<RunFacts>,
}

impl StartSubagent {
    /// Runs the subagent to its end. Its log is written even if the parent no longer reads the reports.
    pub(super) async fn run_to_end(self) {
        let Self { shared, id, request, parent, cancel, commands, reports } = self;
        let (root_session, deadline) = (parent.limits.root_session.clone(), parent.limits.deadline);
        let opened = {
            let shared = Arc::clone(&shared);
            blocking(move || shared.storage.subagent_logs.open(&root_session)).join().await
        };
        let log = match opened {
            Ok(Ok(log)) => log,
            Ok(Err(error)) => return reports.finish(SubagentResult::not_started(&error_chain(&error))).await,
            Err(error) => return reports.finish(SubagentResult::not_started(&error.message)).await,
        };
        let mut subagent = Subagent {
            id,
            parent: parent.session.clone(),
            log,
            reports,
            commands: Some(commands),
            undecided: HashSet::new(),
            turns: 0,
            last_text: String::new(),
            facts: None,
        };
        let started = SubagentEventKind::Started {
            agent: request.agent.clone(),
            prompt: request.prompt.user_text().to_owned(),
            depth: parent.limits.depth,
        };
        // A subagent that is not in the log must not run.
        let result = match subagent.write(started).await {
            Err(reason) => SubagentResult::not_started(&reason),
            Ok(()) => {
                let started_at = Instant::now();
                let deadline = deadline.unwrap_or(started_at);
                let run = (shared.start_subagent)(&shared, request, parent, cancel);
                let (outcome, timed_out) = subagent.follow(run, deadline).await;
                let allowed = deadline.duration_since(started_at);
                let result = subagent.conclude(outcome, timed_out.then_some(allowed)).await;
                SubagentResult { facts: subagent.facts.take(), ..result }
            }
        };
        subagent.reports.finish(result).await;
    }
}

impl Subagent {
    /// Follows the run to its end. Returns its outcome, and true if it was cancelled because its time was
    /// over.
    async fn follow(&mut self, mut run: Run, deadline: Instant) -> (Outcome, bool) {
        let time_is_over = tokio::time::sleep_until(deadline);
        tokio::pin!(time_is_over);
        let mut timed_out = false;
        loop {
            // The run itself watches the parent's cancel signal, and its last event ends this loop.
            let event = tokio::select! {
                biased;
                () = &mut time_is_over, if !timed_out => {
                    timed_out = true;
                    run.cancel();
                    continue;
                }
                command = receive(&mut self.commands) => {
                    match command {
                        Some(command) => run.send(command),
                        None => {
                            self.commands = None;
                            run.close_commands();
                        }
                    }
                    continue;
                }
                event = run.next_event() => event,
            };
            match event {
                Some(Event::Ended(outcome)) => return (outcome, timed_out),
                None => return (Outcome::Cancelled, timed_out),
                Some(event) => self.handle_event(event).await,
            }
        }
    }

    async fn handle_event(&mut self, event: Event) {
        match event {
            Event::TurnCompleted { content, .. } => {
                self.turns += 1;
                if !content.trim().is_empty() {
                    self.last_text = content;
                }
                self.log(SubagentEventKind::Turn { number: self.turns }).await;
            }
            Event::ToolDecided { call, decision } => {
                if self.undecided.remove(&call) {
                    let approved = decision == Decision::Approved;
                    self.log(SubagentEventKind::ApprovalResolved { call, approved }).await;
                }
            }
            Event::ToolStarted(call) => self.log(SubagentEventKind::ToolCall { tool: call.name }).await,
            Event::ToolsProposed(mut calls) => {
                for proposed in calls.iter_mut().filter(|proposed| proposed.subagent.is_none()) {
                    proposed.subagent = Some(self.id.clone());
                    self.log_proposed(&proposed.call).await;
                }
                self.reports.send(SubagentReport::Proposed(calls)).await;
            }
            Event::ToolRequested { call, timeout, subagent } => {
                if subagent.is_none() {
                    self.log(SubagentEventKind::ToolCall { tool: call.name.clone() }).await;
                }
                let subagent = subagent.unwrap_or_else(|| self.id.clone());
                self.reports.send(SubagentReport::Requested { call, timeout, subagent }).await;
            }
            Event::Facts(facts) => self.facts = Some(facts),
            Event::Subagent(event) => self.reports.send(SubagentReport::Logged(event)).await,
            Event::Started { .. }
            | Event::Notice(_)
            | Event::Progress(_)
            | Event::Compacted { .. }
            | Event::WaitingForSession
            | Event::Text(_)
            | Event::Reasoning(_)
            | Event::TurnedBack(_)
            | Event::ToolOutput { .. }
            | Event::ToolFinished { .. }
            | Event::ToolsCompleted
            | Event::CheckStarted { .. }
            | Event::CheckFinished(_)
            | Event::Ended(_) => {}
        }
    }

    /// Logs that one of the subagent's own calls waits for a decision.
    async fn log_proposed(&mut self, call: &ToolCall) {
        let (call, tool) = (call.id.clone(), call.name.clone());
        self.undecided.insert(call.clone());
        self.log(SubagentEventKind::ApprovalRequested { call, tool }).await;
    }

    /// Logs how the run ended, and returns the result for the parent. `exceeded` is the time that the
    /// subagent was allowed, if that was too short.
    async fn conclude(&mut self, outcome: Outcome, exceeded: Option<Duration>) -> SubagentResult {
        let denied = matches!(outcome, Outcome::Denied | Outcome::Parked(_));
        let (cause, message) = match outcome {
            Outcome::Completed { content, truncated, .. } => {
                return self.conclude_completed(content, truncated).await;
            }
            Outcome::Cancelled => match exceeded {
                Some(time) => (FailureCause::Budget, format!("it used up its {} s", time.as_secs().max(1))),
                None => {
                    self.log(SubagentEventKind::Exited { how: SubagentExit::Cancelled }).await;
                    return SubagentResult::failed("it was cancelled");
                }
            },
            Outcome::Denied | Outcome::Parked(_) => {
                (FailureCause::Denied, "a call of it was denied".to_owned())
            }
            Outcome::Failed(error) => (failure_cause(error.kind), error.message),
        };
        self.log(SubagentEventKind::Failed { cause, message: message.clone() }).await;
        self.log(SubagentEventKind::Exited { how: SubagentExit::Failed }).await;
        let mut message = message;
        if !self.last_text.is_empty() {
            message.push_str("\nIts last words: ");
            message.push_str(&self.last_text[..self.last_text.floor_char_boundary(MAX_LAST_TEXT_BYTES)]);
        }
        SubagentResult { denied, ..SubagentResult::failed(&message) }
    }

    async fn conclude_completed(&mut self, mut content: String, truncated: bool) -> SubagentResult {
        if content.len() > MAX_RESULT_BYTES {
            content.truncate(content.floor_char_boundary(MAX_RESULT_BYTES));
            content.push_str("\n[the rest of the answer is left out]");
        }
        if truncated {
            content.push_str("\n[the answer was cut: the worker's tokens were used up]");
        }
        self.log(SubagentEventKind::Completed { result: content.clone() }).await;
        self.log(SubagentEventKind::Exited { how: SubagentExit::Completed }).await;
        SubagentResult { outcome: ToolOutcome::done(content), denied: false, facts: None }
    }

    /// Writes an event to the log and reports it to the parent. A log that cannot be written does not stop a
    /// subagent.
    async fn log(&self, event: SubagentEventKind) {
        if let Err(error) = self.write(event).await {
            tracing::warn!(error, subagent = %self.id, "an event of a subagent could not be stored");
        }
    }

    async fn write(&self, event: SubagentEventKind) -> Result<(), String> {
        let (log, id, parent) = (Arc::clone(&self.log), self.id.clone(), self.parent.clone());
        let mut writing = blocking(move || log.append(&id, &parent, event));
        let written: Result<SubagentEvent, SubagentLogError> =
            writing.join().await.map_err(|error| error.message)?;
        let event = written.map_err(|error| error_chain(&error))?;
        self.reports.send(SubagentReport::Logged(event)).await;
        Ok(())
    }
}

fn failure_cause(kind: FailureKind) -> FailureCause {
    match kind {
        FailureKind::Limit => FailureCause::Budget,
        FailureKind::Model | FailureKind::Unreachable => FailureCause::Model,
        FailureKind::Request | FailureKind::Check | FailureKind::Storage | FailureKind::Internal => {
            FailureCause::Other
        }
    }
}
