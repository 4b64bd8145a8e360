//! News on the wire, in the forms of both generations. Pure.
//!
//! A frame has the first generation's field (1 to 11) and the second's (19) side by side: each client reads
//! its own and skips the other. Two pairs of numbers differ between them, see `proto/roz/v1/agent.proto`.
#![warn(clippy::wildcard_enum_match_arm)]

use prost_types::Timestamp;
use serde_json::json;

use crate::{
    config::RozEvents,
    pb::roz::{
        self as pb, SessionEventEnvelope, SessionResponse, session_event_envelope::TypedEvent as Second,
        session_response::Response as First,
    },
};

use super::{
    server_event::{Activity, Fault, Permission, ServerEvent, Usage},
    structs,
};

/// What every event of the second generation carries.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventMetadata {
    pub(super) event_id: String,
    /// The same for all of one turn.
    pub(super) correlation_id: String,
    pub(super) timestamp: Timestamp,
}

/// The frame of `news`; `None` when the forms that are wanted have no word for it.
pub(super) fn frame(news: ServerEvent, events: RozEvents, stamp: EventMetadata) -> Option<SessionResponse> {
    let (first, second) = encode(news);
    let shared = matches!(first, Some(First::Keepalive(_) | First::Pong(_)));
    let response = first.filter(|_| shared || events != RozEvents::Second);
    let session_event = second.filter(|_| events != RozEvents::First).map(|event| SessionEventEnvelope {
        event_id: stamp.event_id,
        correlation_id: stamp.correlation_id,
        parent_event_id: None,
        timestamp: Some(stamp.timestamp),
        event_type: event_type(&event).to_owned(),
        typed_event: Some(event),
    });
    (response.is_some() || session_event.is_some()).then_some(SessionResponse { response, session_event })
}

fn encode(news: ServerEvent) -> (Option<First>, Option<Second>) {
    match news {
        ServerEvent::Started { session, model, permissions } => started(session, model, permissions),
        ServerEvent::TurnStarted { index } => {
            (None, Some(Second::TurnStarted(pb::TurnStartedPayload { turn_index: index })))
        }
        ServerEvent::Text { message, content } => (
            Some(First::TextDelta(pb::TextDelta { message_id: message.clone(), content: content.clone() })),
            Some(Second::TextDelta(pb::TextDeltaPayload { content, message_id: Some(message) })),
        ),
        ServerEvent::Thinking { message, content } => (
            Some(First::ThinkingDelta(pb::ThinkingDelta {
                message_id: message.clone(),
                content: content.clone(),
            })),
            Some(Second::ThinkingDelta(pb::ThinkingDeltaPayload { content, message_id: Some(message) })),
        ),
        ServerEvent::ToolRequest { call, tool, parameters, timeout_ms } => (
            Some(First::ToolRequest(pb::ToolRequest {
                tool_call_id: call.clone(),
                tool_name: tool.clone(),
                parameters: Some(parameters.clone()),
                timeout_ms,
            })),
            Some(Second::ToolCallRequested(pb::ToolCallRequestedPayload {
                call_id: call,
                tool_name: tool,
                parameters: Some(parameters),
                timeout_ms,
            })),
        ),
        ServerEvent::TurnComplete { message, usage, stop } => turn_complete(message, usage, stop),
        ServerEvent::Error(Fault { code, message, retryable }) => (
            Some(First::Error(pb::SessionError {
                code: code.to_owned(),
                message: message.clone(),
                retryable,
            })),
            Some(Second::SessionRejected(pb::SessionRejectedPayload {
                code: code.to_owned(),
                message,
                retryable,
            })),
        ),
        ServerEvent::Keepalive(fill) => (
            Some(First::Keepalive(pb::Keepalive {
                tokens_used: fill.map(|fill| fill.used),
                tokens_max: fill.map(|fill| fill.max),
            })),
            None,
        ),
        ServerEvent::Pong => (Some(First::Pong(pb::Pong {})), None),
        ServerEvent::Compacted { messages, tokens } => (
            Some(First::ContextCompacted(pb::ContextCompacted {
                level: "summary".to_owned(),
                messages_before: messages.0,
                messages_after: messages.1,
                tokens_before: tokens.0,
                tokens_after: tokens.1,
                summary: None,
            })),
            Some(Second::ContextCompacted(pb::ContextCompactedPayload {
                level: "llm_summary".to_owned(),
                messages_affected: messages.0.saturating_sub(messages.1),
                tokens_before: tokens.0,
                tokens_after: tokens.1,
            })),
        ),
        ServerEvent::Presence { level, reason } => (
            Some(First::PresenceHint(pb::PresenceHint {
                level: level.to_owned(),
                reason: reason.to_owned(),
            })),
            Some(Second::PresenceHinted(pb::PresenceHintedPayload {
                level: level.to_owned(),
                reason: reason.to_owned(),
            })),
        ),
        ServerEvent::Activity { state, detail, progress } => activity(state, detail, progress),
        ServerEvent::ApprovalRequested { call, tool, reason, timeout_secs } => (
            None,
            Some(Second::ApprovalRequested(pb::ApprovalRequestedPayload {
                approval_id: call,
                action: tool,
                reason,
                timeout_secs,
            })),
        ),
        ServerEvent::ApprovalResolved { call, denied } => {
            let outcome = match denied {
                None => json!({"type": "approved"}),
                Some(reason) => json!({"type": "denied", "reason": reason}),
            };
            let outcome = Some(structs::from_json(outcome));
            (None, Some(Second::ApprovalResolved(pb::ApprovalResolvedPayload { approval_id: call, outcome })))
        }
        ServerEvent::Completed { summary, totals } => (
            None,
            Some(Second::SessionCompleted(pb::SessionCompletedPayload {
                summary: summary.to_owned(),
                input_tokens: totals.input + totals.cached,
                output_tokens: totals.output,
            })),
        ),
    }
}

fn started(session: String, model: String, permissions: Vec<Permission>) -> (Option<First>, Option<Second>) {
    let (old, new) = permissions
        .into_iter()
        .map(|Permission { pattern, policy, category, reason }| {
            let (policy, category) = (policy.to_owned(), category.map(str::to_owned));
            let reason = Some(reason.to_owned());
            (
                pb::PermissionRule {
                    tool_pattern: pattern.clone(),
                    policy: policy.clone(),
                    category: category.clone(),
                    reason: reason.clone(),
                },
                pb::SessionPermissionRulePayload { tool_pattern: pattern, policy, category, reason },
            )
        })
        .unzip();
    (
        Some(First::SessionStarted(pb::SessionStarted {
            session_id: session.clone(),
            model: model.clone(),
            permissions: old,
        })),
        Some(Second::SessionStarted(pb::SessionStartedPayload {
            session_id: session,
            mode: "local".to_owned(),
            blueprint_version: "unknown".to_owned(),
            model_name: Some(model),
            permissions: new,
        })),
    )
}

fn turn_complete(
    message: String,
    usage: Option<Usage>,
    stop: &'static str,
) -> (Option<First>, Option<Second>) {
    let real = usage.unwrap_or_default();
    (
        Some(First::TurnComplete(pb::TurnComplete {
            message_id: message.clone(),
            usage: usage.map(|usage| pb::TokenUsage {
                input_tokens: saturating_u32(usage.input),
                output_tokens: saturating_u32(usage.output),
                cache_read_tokens: saturating_u32(usage.cached),
                cache_creation_tokens: 0,
            }),
            stop_reason: stop.to_owned(),
        })),
        Some(Second::TurnFinished(pb::TurnFinishedPayload {
            input_tokens: saturating_u32(real.input),
            output_tokens: saturating_u32(real.output),
            cache_creation_tokens: 0,
            cache_read_tokens: saturating_u32(real.cached),
            stop_reason: stop.to_owned(),
            message_id: Some(message),
        })),
    )
}

fn activity(state: Activity, detail: String, progress: Option<f32>) -> (Option<First>, Option<Second>) {
    let (old, new) = match state {
        Activity::Thinking => ("thinking", "planning"),
        Activity::CallingTool => ("calling_tool", "calling_tool"),
        Activity::WaitingApproval => ("waiting_approval", "awaiting_approval"),
        Activity::Idle => ("idle", "idle"),
    };
    (
        Some(First::ActivityUpdate(pb::ActivityUpdate {
            state: old.to_owned(),
            detail: detail.clone(),
            progress,
        })),
        Some(Second::ActivityChanged(pb::ActivityChangedPayload {
            state: new.to_owned(),
            reason: detail,
            robot_safe: state == Activity::WaitingApproval,
            unblock_event: None,
        })),
    )
}

/// The published names; not all of them are the fields' own.
fn event_type(event: &Second) -> &'static str {
    match event {
        Second::SessionStarted(_) => "session_started",
        Second::SessionRejected(_) => "session_rejected",
        Second::SessionFailed(_) => "session_failed",
        Second::TextDelta(_) => "text_delta",
        Second::ThinkingDelta(_) => "thinking_delta",
        Second::TurnFinished(_) => "turn_finished",
        Second::ToolCallStarted(_) => "tool_call_started",
        Second::ToolCallRequested(_) => "tool_call_requested",
        Second::ToolCallFinished(_) => "tool_call_finished",
        Second::SafePauseEntered(_) => "safe_pause_entered",
        Second::ActivityChanged(_) => "activity_changed",
        Second::PresenceHinted(_) => "presence_hint",
        Second::TurnStarted(_) => "turn_started",
        Second::SessionCompleted(_) => "session_completed",
        Second::ContextCompacted(_) => "context_compacted",
        Second::ToolUnavailable(_) => "tool_unavailable",
        Second::ApprovalRequested(_) => "approval_requested",
        Second::ApprovalResolved(_) => "approval_resolved",
        Second::SafePauseCleared(_) => "safe_pause_cleared",
        Second::ControllerLoaded(_) => "controller_loaded",
        Second::ControllerShadowStarted(_) => "controller_shadow",
        Second::ControllerPromoted(_) => "controller_promoted",
        Second::ControllerRolledBack(_) => "controller_rolled_back",
        Second::SafetyIntervention(_) => "safety_intervention",
        Second::EdgeTransportDegraded(_) => "edge_degraded",
        Second::VerificationStarted(_) => "verification_started",
        Second::VerificationFinished(_) => "verification_finished",
        Second::ResumeSummary(_) => "resume_summary",
        Second::TelemetryStatusChanged(_) => "telemetry_status",
        Second::TrustPostureChanged(_) => "trust_posture",
        Second::ReasoningTrace(_) => "reasoning_trace",
        Second::ModelCallCompleted(_) => "model_call",
        Second::MemoryRead(_) => "memory_read",
        Second::MemoryWrite(_) => "memory_write",
        Second::SensorRepositioned(_) => "sensor_repositioned",
        Second::ContactStateChanged(_) => "contact_state_changed",
        Second::FeedbackReceived(_) => "feedback_received",
        Second::McpServerDegraded(_) => "mcp_server_degraded",
        Second::SkillLoaded(_) => "skill_loaded",
        Second::SkillCrystallized(_) => "skill_crystallized",
    }
}

/// The wire counts in `uint32`; what is larger is shown as the largest.
pub(super) fn saturating_u32<N: TryInto<u32>>(number: N) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}
