//! A run of the agent core as its client sees it: one turn of a Roz session.

use std::{collections::HashMap, time::Duration};

use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use kontekst_agent::{
    Run,
    protocol::{Command, Event, Outcome},
};
use kontekst_core::{CallId, ContextSnapshot, RunId, ToolCall, ToolFailureKind, ToolOutcome};
use kontekst_pb::roz::{PermissionDecision, ToolResult};
use kontekst_provider::Progress;

use super::{
    approvals::Approvals,
    convert::saturating_u32,
    server_event::{Activity, ContextUsage, Fault, ServerEvent, Usage},
    structs,
    tool_result::tool_outcome,
    wire_ids::WireIds,
};

/// Source: the published service.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A turn in the words of its client.
pub(super) struct TurnLabel {
    /// The client's id of the message, or one made up for it. All text of the turn carries it.
    pub(super) message_id: String,
    /// Shared by all events of the turn.
    pub(super) correlation: Uuid,
    /// Counts from 1 in each session.
    pub(super) index: u32,
}

/// A run that has not ended.
pub(super) struct ClientRun {
    run: Run,
    turn: TurnLabel,
    /// Calls that the client is running, by their ids on the wire.
    pending_calls: HashMap<String, CallId>,
    approvals: Approvals,
    usage: Option<Usage>,
    context_usage: Option<ContextUsage>,
    /// The client was told that tools are being called.
    call_announced: bool,
    /// The client has closed its side, so it runs no more tools and decides on no more calls.
    half_closed: bool,
    next_keepalive: Instant,
}

/// The end of a run.
pub(super) enum RunEnding {
    Completed,
    Cancelled,
    Failed,
}

/// The next thing that happens to a [`ClientRun`].
pub(super) enum RunSignal {
    /// `None` after the last event.
    Event(Option<Event>),
    Keepalive,
    /// The client has not decided on a call in time.
    ApprovalExpired,
}

impl ClientRun {
    pub(super) fn new(run: Run, turn: TurnLabel) -> Self {
        Self {
            run,
            turn,
            pending_calls: HashMap::new(),
            approvals: Approvals::default(),
            usage: None,
            context_usage: None,
            call_announced: false,
            half_closed: false,
            next_keepalive: Instant::now() + KEEPALIVE_INTERVAL,
        }
    }

    pub(super) fn id(&self) -> &RunId {
        self.run.id()
    }

    pub(super) fn correlation(&self) -> Uuid {
        self.turn.correlation
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage.unwrap_or_default()
    }

    pub(super) fn cancel(&self) {
        self.run.cancel();
    }

    /// Waits for the next event of the run, or until a timer is due. Nothing is lost when this future is dropped
    /// before it is ready.
    pub(super) async fn next_signal(&mut self) -> RunSignal {
        let timer = match self.approvals.deadline() {
            Some(deadline) => deadline.min(self.next_keepalive),
            None => self.next_keepalive,
        };
        // A timer that is due comes first: a run that always has an event ready cannot delay it.
        if Instant::now() < timer
            && let Ok(event) = timeout_at(timer, self.run.next_event()).await
        {
            return RunSignal::Event(event);
        }
        if timer < self.next_keepalive {
            return RunSignal::ApprovalExpired;
        }
        self.next_keepalive = Instant::now() + KEEPALIVE_INTERVAL;
        RunSignal::Keepalive
    }

    /// Adds the events that begin a turn.
    pub(super) fn announce(&self, note: Option<&str>, out: &mut Vec<ServerEvent>) {
        out.push(ServerEvent::TurnStarted { index: self.turn.index });
        out.push(ServerEvent::Presence { level: "full", reason: "Agent responding" });
        out.push(ServerEvent::thinking(note.unwrap_or("Processing..."), None));
    }

    /// Adds what the client is told about `event`. Returns how the run ended if this was its last event.
    pub(super) fn handle_event(
        &mut self,
        event: Event,
        ids: &mut WireIds,
        out: &mut Vec<ServerEvent>,
    ) -> Option<RunEnding> {
        let message_id = || self.turn.message_id.clone();
        match event {
            // The protocol has no frame for notices.
            Event::Notice(text) => out.push(ServerEvent::thinking(&text, None)),
            Event::Progress(progress) => out.extend(progress_activity(progress)),
            Event::Compacted { before, after, messages_before, messages_after } => {
                out.push(ServerEvent::Compacted {
                    messages_before: saturating_u32(messages_before),
                    messages_after: saturating_u32(messages_after),
                    tokens_before: before,
                    tokens_after: after,
                });
            }
            Event::Text(content) => out.push(ServerEvent::Text { message_id: message_id(), content }),
            Event::Reasoning(content) => {
                out.push(ServerEvent::Thinking { message_id: message_id(), content });
            }
            Event::TurnCompleted { context, .. } => self.add_usage(&context),
            Event::ToolsProposed(calls) => {
                for proposed in calls {
                    let id = ids.assign(&proposed.call.id);
                    self.approvals.add(id, proposed);
                }
                self.call_announced = true;
                out.push(ServerEvent::Presence { level: "mini", reason: "Running tool" });
                self.ask_next(out);
            }
            Event::ToolDecided { call, decision } => {
                self.approvals.resolve(&call, decision, out);
                self.ask_next(out);
            }
            Event::ToolStarted(call) => self.announce_call(&call.name, out),
            // A subagent's call is requested like one of the run itself. What else a subagent does is reported by
            // WatchTeam.
            Event::ToolRequested { call, timeout, subagent: _ } => self.request_tool(call, timeout, ids, out),
            Event::ToolFinished { call, .. } => self.pending_calls.retain(|_, known| *known != call.id),
            Event::ToolsCompleted => {
                self.call_announced = false;
                out.push(ServerEvent::thinking("Analyzing results...", None));
            }
            Event::Started { .. }
            | Event::WaitingForSession
            | Event::TurnedBack(_)
            | Event::ToolOutput { .. }
            | Event::CheckStarted { .. }
            | Event::CheckFinished(_)
            | Event::Facts(_)
            | Event::Subagent(_) => {}
            Event::Ended(outcome) => return Some(self.finish(outcome, out)),
        }
        None
    }

    fn finish(&mut self, outcome: Outcome, out: &mut Vec<ServerEvent>) -> RunEnding {
        let (stop_reason, ending) = match outcome {
            Outcome::Completed { truncated: false, .. } => ("end_turn", RunEnding::Completed),
            Outcome::Completed { truncated: true, .. } => ("max_tokens", RunEnding::Completed),
            Outcome::Cancelled | Outcome::Denied | Outcome::Parked(_) => ("cancelled", RunEnding::Cancelled),
            Outcome::Failed(error) => {
                let detail = format!("turn {} failed", self.turn.index);
                out.push(ServerEvent::activity(Activity::Idle, detail));
                out.push(ServerEvent::Error(Fault::from(error)));
                return RunEnding::Failed;
            }
        };
        let message_id = self.turn.message_id.clone();
        out.push(ServerEvent::activity(Activity::Idle, String::new()));
        out.push(ServerEvent::TurnComplete { message_id, usage: self.usage, stop_reason });
        ending
    }

    fn add_usage(&mut self, context: &ContextSnapshot) {
        let prompt = context.prompt_tokens.unwrap_or_else(|| context.total_tokens());
        let cached = context.cached_tokens.unwrap_or_default().min(prompt);
        let output = context.answer_tokens.unwrap_or_default();
        *self.usage.get_or_insert_default() +=
            Usage { input: (prompt - cached).into(), output: output.into(), cached: cached.into() };
        self.context_usage = Some(ContextUsage { used: context.total_tokens(), max: context.context_size });
    }

    /// Reports that a tool is called. Calls that run together are reported once.
    fn announce_call(&mut self, tool: &str, out: &mut Vec<ServerEvent>) {
        if !std::mem::replace(&mut self.call_announced, true) {
            out.push(ServerEvent::activity(Activity::CallingTool, tool.to_owned()));
            out.push(ServerEvent::Presence { level: "mini", reason: "Running tool" });
        }
    }

    fn request_tool(
        &mut self,
        call: ToolCall,
        timeout: Duration,
        ids: &mut WireIds,
        out: &mut Vec<ServerEvent>,
    ) {
        if self.half_closed {
            self.run.send(half_closed_result(call.id));
            return;
        }
        self.announce_call(&call.name, out);
        let parameters = structs::from_json(call.parse_arguments().unwrap_or(Value::Null));
        let call_id = ids.assign(&call.id);
        self.pending_calls.insert(call_id.clone(), call.id);
        let timeout_ms = saturating_u32(timeout.as_millis());
        out.push(ServerEvent::ToolRequest { call_id, tool: call.name, parameters, timeout_ms });
    }

    /// Passes a result of the client on to the run. A result for a call that is not pending is ignored.
    pub(super) fn handle_tool_result(&mut self, result: ToolResult) {
        match self.pending_calls.remove(&result.tool_call_id) {
            Some(call) => self.run.send(Command::ToolResult { call, outcome: tool_outcome(result) }),
            None => tracing::debug!("ignored a tool result for a call that is not pending"),
        }
    }

    /// Passes a decision of the client on to the run, which says what was decided: somebody else may have been faster.
    pub(super) fn decide(&mut self, decision: PermissionDecision) {
        if let Some(command) = self.approvals.decide(decision) {
            self.run.send(command);
        }
    }

    /// Denies the call that the client was asked about.
    pub(super) fn expire_approval(&mut self) {
        if let Some(command) = self.approvals.deny_open("; there was no answer in time") {
            self.run.send(command);
        }
    }

    /// Lets the run go on without its client: calls at the client fail, and calls that need approval are denied.
    pub(super) fn half_close(&mut self, out: &mut Vec<ServerEvent>) {
        self.half_closed = true;
        for (_, call) in self.pending_calls.drain() {
            self.run.send(half_closed_result(call));
        }
        self.ask_next(out);
    }

    fn ask_next(&mut self, out: &mut Vec<ServerEvent>) {
        self.approvals.ask_next(out);
        if self.half_closed
            && let Some(command) = self.approvals.deny_open("; the client has closed its side")
        {
            self.run.send(command);
        }
    }

    pub(super) fn keepalive(&self) -> ServerEvent {
        ServerEvent::Keepalive(self.context_usage)
    }
}

/// Returns the result of a call whose client has closed its side.
fn half_closed_result(call: CallId) -> Command {
    let outcome = ToolOutcome::failed(ToolFailureKind::Other, "the client has closed its side");
    Command::ToolResult { call, outcome }
}

#[expect(clippy::cast_precision_loss, reason = "a fraction for people")]
fn progress_activity(progress: Progress) -> Option<ServerEvent> {
    Some(match progress {
        Progress::Queued { position } => {
            ServerEvent::thinking(&format!("waiting for the model, place {position}"), None)
        }
        Progress::Loading { model, fraction } => {
            ServerEvent::thinking(&format!("loading the model {model}"), fraction)
        }
        Progress::Prefill { processed, total, .. } => {
            let fraction = processed as f32 / total.max(1) as f32;
            ServerEvent::thinking("reading the prompt", Some(fraction.min(1.0)))
        }
        Progress::Postponed { seconds } => {
            ServerEvent::thinking(&format!("the model server asks to wait {seconds} s"), None)
        }
        // The client knows that its turn goes on.
        Progress::Requested { .. } | Progress::Writing { .. } => return None,
    })
}
