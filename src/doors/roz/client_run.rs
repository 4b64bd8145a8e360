//! One turn: a run of the core as its client sees it.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use uuid::Uuid;

use crate::{
    agent::{
        Run,
        protocol::{Command, Event, Outcome},
    },
    core::{CallId, ContextSnapshot, ToolCall, ToolFailureKind, ToolOutcome},
    pb::roz::{PermissionDecision, ToolResult},
    provider::Progress,
};

use super::{
    approvals::Approvals,
    convert::saturating_u32,
    server_event::{Activity, ContextUsage, Fault, ServerEvent, Usage},
    structs,
};

/// Source: the published service.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Characters of an activity's detail. Source: the published service.
const MAX_DETAIL_CHARS: usize = 512;

/// Bytes of a tool's result that are looked at; the rest is cut out of its middle.
const MAX_RESULT_BYTES: usize = 1024 * 1024;

/// Ids that are remembered, and bytes that one may have; other calls get new ones.
const MAX_WIRE_IDS: usize = 10_000;
const MAX_WIRE_ID_BYTES: usize = 128;

/// A turn that is going.
pub(super) struct ClientRun {
    run: Run,
    message_id: String,
    correlation: Uuid,
    turn_index: u32,
    /// Calls that are out at the client, by their ids on the wire.
    pending_calls: HashMap<String, CallId>,
    approvals: Approvals,
    usage: Option<Usage>,
    context_usage: Option<ContextUsage>,
    /// It was said that tools are being called.
    call_announced: bool,
    /// The client has closed its side.
    half_closed: bool,
    keepalive: Interval,
}

/// What came of a turn.
pub(super) enum RunEnding {
    Completed,
    Cancelled,
    Failed,
}

/// What a turn waits for.
pub(super) enum RunSignal {
    Event(Option<Event>),
    Keepalive,
    /// Nobody has said anything about a call for too long.
    Expired,
}

/// The ids of a session's calls. A model that counts from zero in each answer is given other ids, so that
/// a late result never meets another call.
#[derive(Default)]
pub(super) struct WireIds(HashSet<String>);

impl WireIds {
    fn assign(&mut self, call: &CallId) -> String {
        let id = call.as_str();
        let usable = self.0.len() < MAX_WIRE_IDS && (1..=MAX_WIRE_ID_BYTES).contains(&id.len());
        if usable && self.0.insert(id.to_owned()) {
            return id.to_owned();
        }
        Uuid::new_v4().to_string()
    }
}

impl ClientRun {
    pub(super) fn new(run: Run, message: String, index: u32) -> Self {
        let mut keepalive = interval_at(Instant::now() + KEEPALIVE_INTERVAL, KEEPALIVE_INTERVAL);
        keepalive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            run,
            message_id: message,
            correlation: Uuid::new_v4(),
            turn_index: index,
            pending_calls: HashMap::new(),
            approvals: Approvals::default(),
            usage: None,
            context_usage: None,
            call_announced: false,
            half_closed: false,
            keepalive,
        }
    }

    /// What all of its events carry.
    pub(super) fn correlation(&self) -> Uuid {
        self.correlation
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage.unwrap_or_default()
    }

    pub(super) fn cancel(&self) {
        self.run.cancel();
    }

    /// Can be dropped halfway without losing anything.
    pub(super) async fn next(&mut self) -> RunSignal {
        let deadline = self.approvals.deadline();
        let expired = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.keepalive.tick() => RunSignal::Keepalive,
            () = expired => RunSignal::Expired,
            event = self.run.next_event() => RunSignal::Event(event),
        }
    }

    /// The first words of a turn.
    pub(super) fn begin(&self, note: Option<&str>, out: &mut Vec<ServerEvent>) {
        out.push(ServerEvent::TurnStarted { index: self.turn_index });
        out.push(ServerEvent::Presence { level: "full", reason: "Agent responding" });
        out.push(thinking_activity(note.unwrap_or("Processing..."), None));
    }

    /// Tells what has happened; gives the ending when it was that.
    pub(super) fn handle_event(
        &mut self,
        event: Event,
        ids: &mut WireIds,
        out: &mut Vec<ServerEvent>,
    ) -> Option<RunEnding> {
        let message = || self.message_id.clone();
        match event {
            // What a person should know has no frame of its own.
            Event::Notice(text) => out.push(thinking_activity(&text, None)),
            Event::Progress(progress) => out.push(progress_activity(progress)),
            Event::Compacted { before, after, messages_before, messages_after } => {
                let messages = (saturating_u32(messages_before), saturating_u32(messages_after));
                out.push(ServerEvent::Compacted { messages, tokens: (before, after) });
            }
            Event::Text(content) => out.push(ServerEvent::Text { message: message(), content }),
            Event::Reasoning(content) => out.push(ServerEvent::Thinking { message: message(), content }),
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
            Event::ToolStarted { name, .. } => self.announce_call(&name, out),
            // A worker's call is answered as one of the run's own; what a worker does is for WatchTeam.
            Event::ToolRequested { call, timeout, subagent: _ } => self.request_tool(call, timeout, ids, out),
            Event::ToolFinished { call, .. } => self.pending_calls.retain(|_, known| *known != call),
            Event::ToolsCompleted => {
                self.call_announced = false;
                out.push(thinking_activity("Analyzing results...", None));
            }
            Event::Started { .. } | Event::WaitingForSession | Event::Subagent(_) => {}
            Event::Ended(outcome) => return Some(self.finish(outcome, out)),
        }
        None
    }

    fn finish(&mut self, outcome: Outcome, out: &mut Vec<ServerEvent>) -> RunEnding {
        let stop = match outcome {
            Outcome::Completed { truncated: false, .. } => "end_turn",
            Outcome::Completed { truncated: true, .. } => "max_tokens",
            Outcome::Cancelled | Outcome::Denied => "cancelled",
            Outcome::Failed(error) => {
                out.push(idle_activity(format!("turn {} failed", self.turn_index)));
                out.push(ServerEvent::Error(Fault::from(error)));
                return RunEnding::Failed;
            }
        };
        out.push(idle_activity(String::new()));
        out.push(ServerEvent::TurnComplete { message: self.message_id.clone(), usage: self.usage, stop });
        if stop == "cancelled" { RunEnding::Cancelled } else { RunEnding::Completed }
    }

    fn add_usage(&mut self, context: &ContextSnapshot) {
        let prompt = context.prompt_tokens.unwrap_or_else(|| context.total_tokens());
        let cached = context.cached_tokens.unwrap_or_default().min(prompt);
        let output = context.answer_tokens.unwrap_or_default();
        *self.usage.get_or_insert_default() +=
            Usage { input: (prompt - cached).into(), output: output.into(), cached: cached.into() };
        self.context_usage = Some(ContextUsage { used: context.total_tokens(), max: context.context_size });
    }

    /// Says that a tool is called, once for all that are called together.
    fn announce_call(&mut self, tool: &str, out: &mut Vec<ServerEvent>) {
        if !std::mem::replace(&mut self.call_announced, true) {
            out.push(ServerEvent::Activity {
                state: Activity::CallingTool,
                detail: tool.to_owned(),
                progress: None,
            });
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
            self.run.send(client_gone(call.id));
            return;
        }
        self.announce_call(&call.name, out);
        let parameters = structs::from_json(call.parse_arguments().unwrap_or(Value::Null));
        let id = ids.assign(&call.id);
        self.pending_calls.insert(id.clone(), call.id);
        let timeout_ms = saturating_u32(timeout.as_millis());
        out.push(ServerEvent::ToolRequest { call: id, tool: call.name, parameters, timeout_ms });
    }

    /// A result from the client. Ids that are not waited for are ignored.
    pub(super) fn handle_tool_result(&mut self, result: ToolResult) {
        match self.pending_calls.remove(&result.tool_call_id) {
            Some(call) => self.run.send(Command::ToolResult { call, outcome: tool_outcome(result) }),
            None => tracing::debug!("a result for a call that is not waited for"),
        }
    }

    pub(super) fn decide(&mut self, decision: PermissionDecision, out: &mut Vec<ServerEvent>) {
        if let Some(command) = self.approvals.decide(decision, out) {
            self.run.send(command);
            self.ask_next(out);
        }
    }

    pub(super) fn expire(&mut self, out: &mut Vec<ServerEvent>) {
        if let Some(command) = self.approvals.expire(out) {
            self.run.send(command);
            self.ask_next(out);
        }
    }

    /// The client has closed its side: the turn goes on without its tools and its word.
    pub(super) fn half_close(&mut self, out: &mut Vec<ServerEvent>) {
        self.half_closed = true;
        for (_, call) in self.pending_calls.drain() {
            self.run.send(client_gone(call));
        }
        self.ask_next(out);
    }

    fn ask_next(&mut self, out: &mut Vec<ServerEvent>) {
        if self.half_closed {
            for command in self.approvals.deny_all(out) {
                self.run.send(command);
            }
        } else {
            self.approvals.ask_next(out);
        }
    }

    pub(super) fn keepalive(&self) -> ServerEvent {
        ServerEvent::Keepalive(self.context_usage)
    }
}

fn client_gone(call: CallId) -> Command {
    let outcome = ToolOutcome::failed(ToolFailureKind::Other, "the client has closed its side");
    Command::ToolResult { call, outcome }
}

fn thinking_activity(detail: &str, progress: Option<f32>) -> ServerEvent {
    let detail = detail.chars().take(MAX_DETAIL_CHARS).collect();
    ServerEvent::Activity { state: Activity::Thinking, detail, progress }
}

fn idle_activity(detail: String) -> ServerEvent {
    ServerEvent::Activity { state: Activity::Idle, detail, progress: None }
}

#[expect(clippy::cast_precision_loss, reason = "a fraction for people")]
fn progress_activity(progress: Progress) -> ServerEvent {
    match progress {
        Progress::Queued { position: place } => {
            thinking_activity(&format!("waiting for the model, place {place}"), None)
        }
        Progress::Loading { model, fraction } => {
            thinking_activity(&format!("loading the model {model}"), fraction)
        }
        Progress::Prefill { processed, total, .. } => {
            let fraction = processed as f32 / total.max(1) as f32;
            thinking_activity("reading the prompt", Some(fraction.min(1.0)))
        }
    }
}

/// A client's result as the model reads it. A JSON string counts as its text; what the client says about
/// the call comes behind the text.
fn tool_outcome(result: ToolResult) -> ToolOutcome {
    let ToolResult { success, result, exit_code, truncated, duration_ms, .. } = result;
    let mut text = match serde_json::from_str::<Value>(&result) {
        Ok(Value::String(text)) if success => text,
        _ => result,
    };
    cut_middle(&mut text);
    let mut notes = Vec::new();
    notes.extend(exit_code.map(|code| format!("exit code {code}")));
    notes.extend(truncated.then(|| "the client cut the output".to_owned()));
    notes.extend(duration_ms.filter(|&ms| ms >= 0).map(|ms| format!("took {ms} ms")));
    if !notes.is_empty() {
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{separator}[{}]", notes.join(", "));
    }
    if success { ToolOutcome::Done(text) } else { ToolOutcome::failed(ToolFailureKind::Other, text) }
}

/// Cuts the middle out of a text that is too large to look at.
fn cut_middle(text: &mut String) {
    if text.len() <= MAX_RESULT_BYTES {
        return;
    }
    let head = text.floor_char_boundary(MAX_RESULT_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_RESULT_BYTES / 2);
    let note = format!("\n[{} bytes were left out here]\n", tail - head);
    text.replace_range(head..tail, &note);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(success: bool, result: &str) -> ToolResult {
        ToolResult { success, result: result.to_owned(), ..ToolResult::default() }
    }

    #[test]
    fn results_are_json_or_text() {
        let done = |text: &str| ToolOutcome::Done(text.to_owned());
        for (given, seen) in [
            ("plain", "plain"),
            (r#""quoted\n""#, "quoted\n"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("[1, 2]", "[1, 2]"),
            ("", ""),
        ] {
            assert_eq!(tool_outcome(result(true, given)), done(seen));
        }
        assert_eq!(
            tool_outcome(result(false, r#""why""#)),
            ToolOutcome::failed(ToolFailureKind::Other, r#""why""#)
        );
    }

    #[test]
    fn what_the_client_says_about_a_call_reaches_the_model() {
        let all = ToolResult {
            exit_code: Some(3),
            truncated: true,
            duration_ms: Some(12),
            ..result(false, "no such file")
        };
        let text = "no such file\n[exit code 3, the client cut the output, took 12 ms]";
        assert_eq!(tool_outcome(all), ToolOutcome::failed(ToolFailureKind::Other, text));
        let odd = ToolResult { duration_ms: Some(-1), ..result(true, "x") };
        assert_eq!(tool_outcome(odd), ToolOutcome::Done("x".to_owned()));
    }

    #[test]
    fn a_result_that_is_too_large_keeps_its_ends() {
        let ToolOutcome::Done(text) = tool_outcome(result(true, &format!("{}€end", "é".repeat(2_000_000))))
        else {
            panic!("it was a success")
        };
        assert!(text.len() < MAX_RESULT_BYTES + 100 && text.starts_with("éé") && text.ends_with("€end"));
        assert!(text.contains(" bytes were left out here]"));
    }

    #[test]
    fn an_id_is_used_once_in_a_session() {
        let mut ids = WireIds::default();
        let call = CallId::new("call_0");
        assert_eq!(ids.assign(&call), "call_0");
        let (second, third) = (ids.assign(&call), ids.assign(&call));
        assert!(second != "call_0" && second != third);
        assert!(!ids.assign(&CallId::new("")).is_empty());
    }
}
