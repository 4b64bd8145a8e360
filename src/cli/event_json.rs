//! Run events as JSON, for `--json`.
#![warn(clippy::wildcard_enum_match_arm)]

use serde_json::{Value, json};

use crate::pb::{self, progress_event::Progress, run_event::Event};

/// Converts an event to a JSON object. Its `type` is the event's name in `proto/kontekst.proto`.
pub(super) fn to_json(event: &Event) -> Value {
    match event {
        Event::Started(e) => {
            json!({"type": "started", "run_id": e.run_id, "session_id": e.session_id, "agent_name": e.agent_name,
                "answers_may_be_turned_back": e.answers_may_be_turned_back})
        }
        Event::Token(e) => json!({"type": "token", "text": e.text}),
        Event::Reasoning(e) => json!({"type": "reasoning", "text": e.text}),
        Event::TurnCompleted(e) => json!({
            "type": "turn_completed", "content": e.content, "reasoning": e.reasoning,
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
        Event::ToolsCompleted(_) => json!({"type": "tools_completed"}),
        Event::Completed(e) => json!({
            "type": "completed", "run_id": e.run_id, "content": e.content, "reasoning": e.reasoning,
            "truncated": e.truncated, "checks_passed": e.checks_passed,
        }),
        Event::Cancelled(e) => json!({"type": "cancelled", "run_id": e.run_id, "denied": e.denied}),
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

fn call_to_json(call: &pb::ProposedToolCall) -> Value {
    json!({
        "call_id": call.call_id, "name": call.name, "arguments_json": call.arguments_json,
        "preview": call.preview, "caution": call.caution, "worker_id": call.worker_id,
        "command": call.command.as_ref().map(|command| json!({"prefixes": command.prefixes})),
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
