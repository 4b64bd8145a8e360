//! Stored conversations, as the page shows them.

use std::collections::VecDeque;

use http::StatusCode;
use serde_json::{Value, json};

use super::super::{
    answer::{self, Answer, Fault},
    clock,
};
use crate::{
    agent::AgentCore,
    core::{Message, Role, SessionId},
    sessions::{Entry, SessionError, Sessions},
};

/// Sessions in a listing; older ones are found with `kontekst sessions`.
const LISTED: usize = 200;
/// Entries of one conversation, its newest.
const SHOWN: usize = 500;
/// Characters of a title.
const TITLE: usize = 80;

/// Reads files, so it gets a thread.
async fn reading<T: Send + 'static>(
    core: &AgentCore,
    read: impl FnOnce(&Sessions) -> Result<T, SessionError> + Send + 'static,
) -> Result<T, Fault> {
    let read = core.on_disk(|_, sessions| read(sessions)).await;
    read.ok_or_else(Fault::internal)?.map_err(|error| fault(&error))
}

fn fault(error: &SessionError) -> Fault {
    let status = match error {
        SessionError::NotFound(_) => StatusCode::NOT_FOUND,
        SessionError::Busy(_) => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Fault::new(status, error.to_string())
}

fn id(text: &str) -> Result<SessionId, Fault> {
    text.parse().map_err(|error| Fault::bad(format!("session: {error}")))
}

pub(super) async fn list(core: &AgentCore) -> Result<Answer, Fault> {
    let listed = reading(core, |sessions| {
        let mut all = sessions.list()?;
        all.sort_by_key(|session| std::cmp::Reverse(session.modified));
        all.truncate(LISTED);
        Ok(all
            .into_iter()
            .map(|session| {
                json!({
                    "id": session.id.to_string(), "title": title(sessions, &session.id), "active": session.active,
                    "modified": clock::stamp(session.modified),
                })
            })
            .collect::<Vec<_>>())
    });
    Ok(answer::ok(&json!({"sessions": listed.await?})))
}

/// The first words of the first message. Only the start of the file is read.
fn title(sessions: &Sessions, id: &SessionId) -> String {
    let first = sessions.entries(id).ok().and_then(|entries| {
        entries.take(8).filter_map(Result::ok).find_map(|entry| match entry {
            Entry::Message(message) if message.role == Role::User => Some(message.content),
            _ => None,
        })
    });
    let first = first.unwrap_or_default();
    let line = first.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(TITLE).collect()
}

pub(super) async fn show(core: &AgentCore, text: &str) -> Result<Answer, Fault> {
    let id = id(text)?;
    let name = id.to_string();
    let (entries, truncated) = reading(core, move |sessions| {
        let (mut last, mut truncated) = (VecDeque::new(), false);
        for entry in sessions.entries(&id)? {
            if let Entry::Message(message) = entry? {
                last.push_back(shown(message));
            }
            if last.len() > SHOWN {
                last.pop_front();
                truncated = true;
            }
        }
        Ok((last, truncated))
    })
    .await?;
    Ok(answer::ok(&json!({"id": name, "entries": entries, "truncated": truncated})))
}

fn shown(message: Message) -> Value {
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

pub(super) async fn delete(core: &AgentCore, text: &str) -> Result<Answer, Fault> {
    let id = id(text)?;
    reading(core, move |sessions| sessions.delete(&id, false)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
