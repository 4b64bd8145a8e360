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
    core::{CallId, ContextSnapshot, ToolCall, ToolOutcome},
    pb::roz::{PermissionDecision, ToolResult},
    provider::Progress,
};

use super::{
    approvals::Approvals,
    convert::int,
    news::{Activity, Fault, Fill, News, Usage},
    structs,
};

/// Source: the published service.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Characters of an activity's detail. Source: the published service.
const DETAIL: usize = 512;

/// Bytes of a tool's result that are looked at; the rest is cut out of its middle.
const RESULT: usize = 1024 * 1024;

/// Ids that are remembered, and bytes that one may have; other calls get new ones.
const IDS: usize = 10_000;
const ID: usize = 128;

/// A turn that is going.
pub(super) struct Turn {
    run: Run,
    message: String,
    correlation: Uuid,
    index: u32,
    /// Calls that are out at the client, by their ids on the wire.
    calls: HashMap<String, CallId>,
    approvals: Approvals,
    usage: Option<Usage>,
    fill: Option<Fill>,
    /// It was said that tools are being called.
    calling: bool,
    /// The client has closed its side.
    deaf: bool,
    keepalive: Interval,
}

/// What came of a turn.
pub(super) enum Ending {
    Completed,
    Cancelled,
    Failed,
}

/// What a turn waits for.
pub(super) enum Happened {
    Event(Option<Event>),
    Keepalive,
    /// Nobody has said anything about a call for too long.
    Expired,
}

/// The ids of a session's calls. A model that counts from zero in each answer is given other ids, so that
/// a late result never meets another call.
#[derive(Default)]
pub(super) struct Ids(HashSet<String>);

impl Ids {
    fn wire(&mut self, call: &CallId) -> String {
        let id = call.as_str();
        let usable = self.0.len() < IDS && (1..=ID).contains(&id.len());
        if usable && self.0.insert(id.to_owned()) {
            return id.to_owned();
        }
        Uuid::new_v4().to_string()
    }
}

impl Turn {
    pub(super) fn new(run: Run, message: String, index: u32) -> Self {
        let mut keepalive = interval_at(Instant::now() + KEEPALIVE, KEEPALIVE);
        keepalive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            run,
            message,
            correlation: Uuid::new_v4(),
            index,
            calls: HashMap::new(),
            approvals: Approvals::default(),
            usage: None,
            fill: None,
            calling: false,
            deaf: false,
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
    pub(super) async fn next(&mut self) -> Happened {
        let deadline = self.approvals.deadline();
        let expired = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.keepalive.tick() => Happened::Keepalive,
            () = expired => Happened::Expired,
            event = self.run.next_event() => Happened::Event(event),
        }
    }

    /// The first words of a turn.
    pub(super) fn begin(&self, note: Option<&str>, out: &mut Vec<News>) {
        out.push(News::TurnStarted { index: self.index });
        out.push(News::Presence { level: "full", reason: "Agent responding" });
        out.push(thinking(note.unwrap_or("Processing..."), None));
    }

    /// Tells what has happened; gives the ending when it was that.
    pub(super) fn tell(&mut self, event: Event, ids: &mut Ids, out: &mut Vec<News>) -> Option<Ending> {
        let message = || self.message.clone();
        match event {
            // What a person should know has no frame of its own.
            Event::Notice(text) => out.push(thinking(&text, None)),
            Event::Progress(progress) => out.push(doing(progress)),
            Event::Compacted { before, after, messages_before, messages_after } => {
                let messages = (int(messages_before), int(messages_after));
                out.push(News::Compacted { messages, tokens: (before, after) });
            }
            Event::Text(content) => out.push(News::Text { message: message(), content }),
            Event::Reasoning(content) => out.push(News::Thinking { message: message(), content }),
            Event::TurnCompleted { context, .. } => self.count(&context),
            Event::ToolsProposed(calls) => {
                for proposed in calls {
                    let id = ids.wire(&proposed.call.id);
                    self.approvals.add(id, proposed);
                }
                self.calling = true;
                out.push(News::Presence { level: "mini", reason: "Running tool" });
                self.ask(out);
            }
            Event::ToolStarted { name, .. } => self.call(&name, out),
            // A worker's call is answered as one of the run's own; what a worker does is for WatchTeam.
            Event::ToolRequested { call, timeout, subagent: _ } => self.request(call, timeout, ids, out),
            Event::ToolFinished { call, .. } => self.calls.retain(|_, known| *known != call),
            Event::ToolsCompleted => {
                self.calling = false;
                out.push(thinking("Analyzing results...", None));
            }
            Event::Started { .. } | Event::WaitingForSession | Event::Subagent(_) => {}
            Event::Ended(outcome) => return Some(self.end(outcome, out)),
        }
        None
    }

    fn end(&mut self, outcome: Outcome, out: &mut Vec<News>) -> Ending {
        let stop = match outcome {
            Outcome::Completed { truncated: false, .. } => "end_turn",
            Outcome::Completed { truncated: true, .. } => "max_tokens",
            Outcome::Cancelled | Outcome::Denied => "cancelled",
            Outcome::Failed(error) => {
                out.push(idle(format!("turn {} failed", self.index)));
                out.push(News::Error(Fault::from(error)));
                return Ending::Failed;
            }
        };
        out.push(idle(String::new()));
        out.push(News::TurnComplete { message: self.message.clone(), usage: self.usage, stop });
        if stop == "cancelled" { Ending::Cancelled } else { Ending::Completed }
    }

    fn count(&mut self, context: &ContextSnapshot) {
        let prompt = context.prompt_tokens.unwrap_or_else(|| context.total_tokens());
        let cached = context.cached_tokens.unwrap_or_default().min(prompt);
        let output = context.answer_tokens.unwrap_or_default();
        *self.usage.get_or_insert_default() +=
            Usage { input: (prompt - cached).into(), output: output.into(), cached: cached.into() };
        self.fill = Some(Fill { used: context.total_tokens(), max: context.context_size });
    }

    /// Says that a tool is called, once for all that are called together.
    fn call(&mut self, tool: &str, out: &mut Vec<News>) {
        if !std::mem::replace(&mut self.calling, true) {
            out.push(News::Activity {
                state: Activity::CallingTool,
                detail: tool.to_owned(),
                progress: None,
            });
            out.push(News::Presence { level: "mini", reason: "Running tool" });
        }
    }

    fn request(&mut self, call: ToolCall, timeout: Duration, ids: &mut Ids, out: &mut Vec<News>) {
        if self.deaf {
            self.run.send(gone(call.id));
            return;
        }
        self.call(&call.name, out);
        let parameters = structs::pb(call.parse_arguments().unwrap_or(Value::Null));
        let id = ids.wire(&call.id);
        self.calls.insert(id.clone(), call.id);
        let timeout_ms = int(timeout.as_millis());
        out.push(News::ToolRequest { call: id, tool: call.name, parameters, timeout_ms });
    }

    /// A result from the client. Ids that are not waited for are ignored.
    pub(super) fn take(&mut self, result: ToolResult) {
        match self.calls.remove(&result.tool_call_id) {
            Some(call) => self.run.send(Command::ToolResult { call, outcome: outcome(result) }),
            None => tracing::debug!("a result for a call that is not waited for"),
        }
    }

    pub(super) fn decide(&mut self, decision: PermissionDecision, out: &mut Vec<News>) {
        if let Some(command) = self.approvals.decide(decision, out) {
            self.run.send(command);
            self.ask(out);
        }
    }

    pub(super) fn expire(&mut self, out: &mut Vec<News>) {
        if let Some(command) = self.approvals.expire(out) {
            self.run.send(command);
            self.ask(out);
        }
    }

    /// The client has closed its side: the turn goes on without its tools and its word.
    pub(super) fn close(&mut self, out: &mut Vec<News>) {
        self.deaf = true;
        for (_, call) in self.calls.drain() {
            self.run.send(gone(call));
        }
        self.ask(out);
    }

    fn ask(&mut self, out: &mut Vec<News>) {
        if self.deaf {
            for command in self.approvals.deny_all(out) {
                self.run.send(command);
            }
        } else {
            self.approvals.ask(out);
        }
    }

    pub(super) fn keepalive(&self) -> News {
        News::Keepalive(self.fill)
    }
}

fn gone(call: CallId) -> Command {
    let outcome = ToolOutcome::Failed("the client has closed its side".to_owned());
    Command::ToolResult { call, outcome }
}

fn thinking(detail: &str, progress: Option<f32>) -> News {
    let detail = detail.chars().take(DETAIL).collect();
    News::Activity { state: Activity::Thinking, detail, progress }
}

fn idle(detail: String) -> News {
    News::Activity { state: Activity::Idle, detail, progress: None }
}

#[expect(clippy::cast_precision_loss, reason = "a fraction for people")]
fn doing(progress: Progress) -> News {
    match progress {
        Progress::Queued { place } => thinking(&format!("waiting for the model, place {place}"), None),
        Progress::Loading { model, fraction } => thinking(&format!("loading the model {model}"), fraction),
        Progress::Prefill { processed, total, .. } => {
            let fraction = processed as f32 / total.max(1) as f32;
            thinking("reading the prompt", Some(fraction.min(1.0)))
        }
    }
}

/// A client's result as the model reads it. A JSON string counts as its text; what the client says about
/// the call comes behind the text.
fn outcome(result: ToolResult) -> ToolOutcome {
    let ToolResult { success, result, exit_code, truncated, duration_ms, .. } = result;
    let mut text = match serde_json::from_str::<Value>(&result) {
        Ok(Value::String(text)) if success => text,
        _ => result,
    };
    shorten(&mut text);
    let mut notes = Vec::new();
    notes.extend(exit_code.map(|code| format!("exit code {code}")));
    notes.extend(truncated.then(|| "the client cut the output".to_owned()));
    notes.extend(duration_ms.filter(|&ms| ms >= 0).map(|ms| format!("took {ms} ms")));
    if !notes.is_empty() {
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{separator}[{}]", notes.join(", "));
    }
    if success { ToolOutcome::Done(text) } else { ToolOutcome::Failed(text) }
}

/// Cuts the middle out of a text that is too large to look at.
fn shorten(text: &mut String) {
    if text.len() <= RESULT {
        return;
    }
    let head = text.floor_char_boundary(RESULT / 2);
    let tail = text.ceil_char_boundary(text.len() - RESULT / 2);
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
            assert_eq!(outcome(result(true, given)), done(seen));
        }
        assert_eq!(outcome(result(false, r#""why""#)), ToolOutcome::Failed(r#""why""#.to_owned()));
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
        assert_eq!(outcome(all), ToolOutcome::Failed(text.to_owned()));
        let odd = ToolResult { duration_ms: Some(-1), ..result(true, "x") };
        assert_eq!(outcome(odd), ToolOutcome::Done("x".to_owned()));
    }

    #[test]
    fn a_result_that_is_too_large_keeps_its_ends() {
        let ToolOutcome::Done(text) = outcome(result(true, &format!("{}€end", "é".repeat(2_000_000))))
        else {
            panic!("it was a success")
        };
        assert!(text.len() < RESULT + 100 && text.starts_with("éé") && text.ends_with("€end"));
        assert!(text.contains(" bytes were left out here]"));
    }

    #[test]
    fn an_id_is_used_once_in_a_session() {
        let mut ids = Ids::default();
        let call = CallId::new("call_0");
        assert_eq!(ids.wire(&call), "call_0");
        let (second, third) = (ids.wire(&call), ids.wire(&call));
        assert!(second != "call_0" && second != third);
        assert!(!ids.wire(&CallId::new("")).is_empty());
    }
}
