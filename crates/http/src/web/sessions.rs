//! The stored sessions that the page shows.

use std::collections::VecDeque;

use http::StatusCode;
use serde_json::{Value, json};

use kontekst_agent::AgentCore;
use kontekst_core::{Message, Role, SessionId, clock};
use kontekst_store::sessions::{Entry, SessionError, Sessions};

use super::super::response::{self, HttpError, HttpResponse};

/// The maximum number of sessions in the list. `kontekst sessions` shows older ones too.
const MAX_SESSIONS: usize = 200;
/// The maximum number of messages of a session. The page gets the newest.
const MAX_ENTRIES: usize = 500;

/// Runs `read` on a thread for blocking work, because it reads files.
async fn with_sessions<T: Send + 'static>(
    core: &AgentCore,
    read: impl FnOnce(&Sessions) -> Result<T, SessionError> + Send + 'static,
) -> Result<T, HttpError> {
    let read = core.with_storage(|_, sessions| read(sessions)).await;
    read.ok_or_else(HttpError::internal)?.map_err(|error| http_error(&error))
}

fn http_error(error: &SessionError) -> HttpError {
    let status = match error {
        SessionError::NotFound(_) => StatusCode::NOT_FOUND,
        SessionError::Busy(_) => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    HttpError::new(status, error.to_string())
}

fn id(text: &str) -> Result<SessionId, HttpError> {
    text.parse().map_err(|error| HttpError::bad_request(format!("session: {error}")))
}

pub(super) async fn list(core: &AgentCore) -> Result<HttpResponse, HttpError> {
    let listed = with_sessions(core, |sessions| {
        let mut all = sessions.list()?;
        all.sort_by_key(|session| std::cmp::Reverse(session.modified));
        all.truncate(MAX_SESSIONS);
        let overviews = sessions.overviews(&all);
        Ok(all
            .into_iter()
            .zip(overviews)
            .map(|(session, overview)| {
                json!({
                    "id": session.id.to_string(), "title": overview.title, "active": session.active,
                    "modified": clock::rfc3339_millis(session.modified),
                })
            })
            .collect::<Vec<_>>())
    });
    Ok(response::ok(&json!({"sessions": listed.await?})))
}

pub(super) async fn show(core: &AgentCore, text: &str) -> Result<HttpResponse, HttpError> {
    let id = id(text)?;
    let name = id.to_string();
    let (entries, truncated) = with_sessions(core, move |sessions| {
        let (mut last, mut truncated) = (VecDeque::new(), false);
        for entry in sessions.entries(&id)? {
            if let Entry::Message(message) = entry? {
                last.push_back(message_json(message));
            }
            if last.len() > MAX_ENTRIES {
                last.pop_front();
                truncated = true;
            }
        }
        Ok((last, truncated))
    })
    .await?;
    Ok(response::ok(&json!({"id": name, "entries": entries, "truncated": truncated})))
}

fn message_json(message: Message) -> Value {
    match (message.role, message.tool_result) {
        (_, Some(result)) => json!({
            "role": "tool", "call": result.call_id.to_string(), "ok": !result.is_error, "text": result.output,
        }),
        (Role::Assistant, None) => {
            let calls: Vec<Value> = message
                .tool_calls
                .iter()
                .map(
                    |call| json!({"id": call.id.to_string(), "name": call.name, "arguments": call.arguments}),
                )
                .collect();
            json!({"role": "assistant", "text": message.content, "reasoning": message.reasoning, "calls": calls})
        }
        (Role::System, None) => json!({"role": "summary", "text": message.content}),
        (Role::User | Role::Tool, None) => json!({"role": "user", "text": message.content}),
    }
}

pub(super) async fn delete(core: &AgentCore, text: &str) -> Result<HttpResponse, HttpError> {
    let id = id(text)?;
    with_sessions(core, move |sessions| sessions.delete(&id, false)).await?;
    Ok(response::empty(StatusCode::NO_CONTENT))
}
