//! Run events as JSON, for `--output stream-json`. `docs/run-output.schema.json` describes them.
#![warn(clippy::wildcard_enum_match_arm)]

use serde_json::{Value, json};

use crate::pb::{self, progress_event::Progress, run_event::Event};

/// Returns true if the run has certainly changed nothing.
pub(super) fn nothing_changed(facts: &pb::RunFactsEvent) -> bool {
    facts.complete && facts.changed_files.is_empty()
}

/// Converts a command line that the model has run.
pub(super) fn command_to_json(command: &pb::RanCommand) -> Value {
    json!({"line": command.line, "exit_status": command.exit_status})
}

/// The version of `docs/run-output.schema.json`. It is increased when something in the output changes its meaning or goes
/// away, and not when something is added.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// Converts an event to a JSON object. Its `type` is the event's name in `proto/kontekst.proto`.
pub(super) fn to_json(event: &Event) -> Value {
    match event {
        Event::Started(e) => {
            json!({"type": "started", "schema_version": SCHEMA_VERSION, "session_id": e.session_id,
                "run_id": e.run_id, "agent_name": e.agent_name,
                "answers_may_be_turned_back": e.answers_may_be_turned_back})
        }
        Event::Token(e) => json!({"type": "token", "text": e.text}),
        Event::Reasoning(e) => json!({"type": "reasoning", "text": e.text}),
        Event::TurnCompleted(e) => json!({
            "type": "turn_completed", "content": e.content, "reasoning": e.reasoning,
            "model": (!e.model.is_empty()).then_some(&e.model),
            "tool_calls": e.calls.iter().map(written_call_to_json).collect::<Vec<_>>(),
            "context": e.context.as_ref().map(context_to_json),
        }),
        Event::TurnedBack(e) => json!({"type": "turned_back", "reason": e.reason}),
        Event::ToolsProposed(e) => {
            json!({"type": "tools_proposed", "calls": e.calls.iter().map(call_to_json).collect::<Vec<_>>()})
        }
        Event::ToolDecided(e) => {
            json!({
                "type": "tool_decided", "call_id": e.call_id, "approved": e.approved, "withdrawn": e.withdrawn,
            })
        }
        Event::ToolStarted(e) => json!({"type": "tool_started", "call_id": e.call_id, "name": e.name}),
        Event::ToolCompleted(e) => {
            json!({"type": "tool_completed", "call_id": e.call_id, "output": e.output})
        }
        Event::ToolFailed(e) => {
            json!({"type": "tool_failed", "call_id": e.call_id, "name": e.name, "error": e.error})
        }
        Event::ToolOutput(e) => json!({"type": "tool_output", "call_id": e.call_id, "text": e.text}),
        Event::Check(e) => check_to_json(e),
        Event::Facts(e) => json!({
            "type": "facts", "changed_files": e.changed_files, "nothing_changed": nothing_changed(e),
            "commands": e.commands.iter().map(command_to_json).collect::<Vec<_>>(),
        }),
        Event::ToolsCompleted(_) => json!({"type": "tools_completed"}),
        Event::Completed(e) => json!({
            "type": "completed", "run_id": e.run_id, "content": e.content, "reasoning": e.reasoning,
            "truncated": e.truncated, "checks_passed": e.checks_passed,
        }),
        Event::Cancelled(e) => json!({
            "type": "cancelled", "run_id": e.run_id, "denied": e.denied, "parked_run_id": e.parked_run_id,
        }),
        Event::Failed(e) => json!({
            "type": "failed", "run_id": e.run_id, "error": e.error, "hint": e.hint,
            "kind": e.kind().as_str_name().trim_start_matches("FAILURE_KIND_").to_ascii_lowercase(),
        }),
        Event::ContextSnapshot(e) => {
            json!({"type": "context_snapshot", "context": e.context.as_ref().map(context_to_json)})
        }
        Event::Progress(e) => progress_to_json(e),
        Event::Compacted(e) => {
            json!({"type": "compacted", "tokens_before": e.tokens_before, "tokens_after": e.tokens_after})
        }
        Event::Worker(e) => worker_event_to_json(e),
        Event::Notice(e) => json!({"type": "notice", "text": e.text}),
    }
}

fn progress_to_json(progress: &pb::ProgressEvent) -> Value {
    match &progress.progress {
        Some(Progress::Queued(q)) => {
            json!({"type": "queued", "place": q.place, "waiting_for": q.waiting_for})
        }
        Some(Progress::Loading(l)) => {
            json!({"type": "loading", "model": l.model, "fraction": l.fraction})
        }
        Some(Progress::Prefill(p)) => {
            json!({"type": "prefill", "processed": p.processed, "total": p.total, "cached": p.cached})
        }
        Some(Progress::Postponed(p)) => json!({"type": "postponed", "seconds": p.seconds}),
        Some(Progress::Requested(r)) => json!({"type": "requested", "model": r.model, "server": r.server}),
        Some(Progress::Writing(w)) => json!({"type": "writing", "bytes": w.bytes}),
        None => json!({"type": "progress"}),
    }
}

fn check_to_json(check: &pb::CheckEvent) -> Value {
    if !check.finished {
        return json!({"type": "check_started", "command": check.command, "round": check.round});
    }
    json!({
        "type": "check", "command": check.command, "round": check.round, "passed": check.passed,
        "summary": check.summary, "output": check.output,
    })
}

fn written_call_to_json(call: &pb::ToolCall) -> Value {
    json!({"call_id": call.call_id, "name": call.name, "arguments_json": call.arguments_json})
}

fn call_to_json(call: &pb::ProposedToolCall) -> Value {
    json!({
        "call_id": call.call_id, "name": call.name, "arguments_json": call.arguments_json,
        "preview": call.preview, "caution": call.caution, "worker_id": call.worker_id,
        "command": call.command.as_ref().map(|command| json!({"prefixes": command.prefixes})),
        "asked_by": call.asked_by, "rules": call.rules,
        "unchanged_since_parked": call.unchanged_since_parked,
    })
}

/// Converts what a subagent did to a JSON object. Its `event` is the event's name in `proto/kontekst.proto`.
pub(super) fn worker_event_to_json(worker: &pb::WorkerEvent) -> Value {
    use pb::worker_event::Event;
    let mut json = match &worker.event {
        Some(Event::Started(e)) => {
            json!({"event": "started", "agent_name": e.agent_name, "prompt": e.prompt, "depth": e.depth})
        }
        Some(Event::Turn(e)) => json!({"event": "turn", "number": e.number}),
        Some(Event::ToolCall(e)) => json!({"event": "tool_call", "tool": e.tool}),
        Some(Event::ApprovalRequested(e)) => {
            json!({"event": "approval_requested", "call_id": e.call_id, "tool": e.tool})
        }
        Some(Event::ApprovalResolved(e)) => {
            json!({"event": "approval_resolved", "call_id": e.call_id, "approved": e.approved})
        }
        Some(Event::Completed(e)) => json!({"event": "completed", "result": e.result}),
        Some(Event::Failed(e)) => json!({"event": "failed", "cause": e.cause, "message": e.message}),
        Some(Event::Exited(e)) => json!({"event": "exited", "how": e.how}),
        None => json!({}),
    };
    let head = json!({
        "type": "worker", "seq": worker.seq, "at_ms": worker.at_ms, "worker_id": worker.worker_id,
        "parent_id": worker.parent_id,
    });
    if let (Value::Object(json), Value::Object(head)) = (&mut json, head) {
        json.extend(head);
    }
    json
}

fn context_to_json(context: &pb::ContextSnapshot) -> Value {
    json!({
        "context_size": context.context_size, "system_tokens": context.system_tokens,
        "tool_tokens": context.tool_tokens, "history_tokens": context.history_tokens,
        "memory_tokens": context.memory_tokens, "total_tokens": context.total_tokens,
        "remaining_tokens": context.remaining_tokens, "history_messages": context.history_messages,
        "memory_messages": context.memory_messages, "total_messages": context.total_messages,
        "history_budget": context.history_budget, "prompt_tokens": context.prompt_tokens,
        "cached_tokens": context.cached_tokens, "answer_tokens": context.answer_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pb::worker_event::Event as Worker;

    /// Refuses members that a schema does not name, so that a new one is not forgotten there.
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(members) => {
                members.values_mut().for_each(close);
                if members.contains_key("properties") {
                    members.insert("additionalProperties".to_owned(), false.into());
                }
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn progress(progress: Progress) -> Event {
        Event::Progress(pb::ProgressEvent { progress: Some(progress) })
    }

    fn worker(event: Worker) -> Event {
        Event::Worker(pb::WorkerEvent { event: Some(event), ..pb::WorkerEvent::default() })
    }

    fn events() -> Vec<Event> {
        let context = Some(pb::ContextSnapshot { prompt_tokens: Some(1), ..pb::ContextSnapshot::default() });
        let command = Some(pb::CommandLine { prefixes: vec!["ls".to_owned()] });
        let call = pb::ProposedToolCall { command, ..pb::ProposedToolCall::default() };
        let turn = pb::TurnCompletedEvent {
            context: context.clone(),
            calls: vec![pb::ToolCall::default()],
            ..pb::TurnCompletedEvent::default()
        };
        vec![
            Event::Started(pb::RunStartedEvent::default()),
            Event::Token(pb::TokenDeltaEvent::default()),
            Event::Reasoning(pb::ReasoningDeltaEvent::default()),
            Event::TurnCompleted(turn),
            Event::TurnCompleted(pb::TurnCompletedEvent::default()),
            Event::TurnedBack(pb::TurnedBackEvent::default()),
            Event::ToolsProposed(pb::ToolsProposedEvent {
                calls: vec![call, pb::ProposedToolCall::default()],
            }),
            Event::ToolDecided(pb::ToolDecidedEvent::default()),
            Event::ToolStarted(pb::ToolExecutionStartedEvent::default()),
            Event::ToolCompleted(pb::ToolExecutionCompletedEvent::default()),
            Event::ToolFailed(pb::ToolExecutionFailedEvent::default()),
            Event::ToolOutput(pb::ToolOutputEvent::default()),
            Event::ToolsCompleted(pb::ToolsCompletedEvent::default()),
            Event::Check(pb::CheckEvent::default()),
            Event::Check(pb::CheckEvent { finished: true, ..pb::CheckEvent::default() }),
            Event::Completed(pb::RunCompletedEvent {
                checks_passed: Some(true),
                ..pb::RunCompletedEvent::default()
            }),
            Event::Cancelled(pb::RunCancelledEvent::default()),
            Event::Failed(pb::RunFailedEvent::default()),
            Event::ContextSnapshot(pb::ContextSnapshotEvent { context }),
            Event::Compacted(pb::CompactedEvent::default()),
            Event::Notice(pb::NoticeEvent::default()),
            Event::Progress(pb::ProgressEvent::default()),
            progress(Progress::Queued(pb::QueuedProgress::default())),
            progress(Progress::Loading(pb::LoadingProgress { fraction: Some(0.5), ..<_>::default() })),
            progress(Progress::Prefill(pb::PrefillProgress::default())),
            progress(Progress::Postponed(pb::PostponedProgress::default())),
            progress(Progress::Requested(pb::RequestedProgress::default())),
            progress(Progress::Writing(pb::WritingProgress::default())),
            Event::Worker(pb::WorkerEvent::default()),
            worker(Worker::Started(pb::WorkerStarted::default())),
            worker(Worker::Turn(pb::WorkerTurn::default())),
            worker(Worker::ToolCall(pb::WorkerToolCall::default())),
            worker(Worker::ApprovalRequested(pb::WorkerApprovalRequested::default())),
            worker(Worker::ApprovalResolved(pb::WorkerApprovalResolved::default())),
            worker(Worker::Completed(pb::WorkerCompleted::default())),
            worker(Worker::Failed(pb::WorkerFailed::default())),
            worker(Worker::Exited(pb::WorkerExited::default())),
        ]
    }

    #[test]
    fn the_published_schema_describes_each_event() {
        let mut schema: Value =
            serde_json::from_str(include_str!("../../docs/run-output.schema.json")).unwrap();
        close(&mut schema);
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource("kontekst:output", schema).unwrap();
        let index = compiler.compile("kontekst:output", &mut schemas).unwrap();
        for event in events() {
            let json = to_json(&event);
            assert!(schemas.validate(&json, index).is_ok(), "{json}");
        }
        let unknown = json!({"type": "token", "text": "", "more": 1});
        assert!(schemas.validate(&unknown, index).is_err());
    }
}
