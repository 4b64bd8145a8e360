//! The six methods.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, PoisonError},
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::{core::clock, tools::FileError};

use super::{
    Shared,
    connection::Connection,
    error::{Code, RpcError, bad_field},
    fix,
    incident::{self, group_by_file},
    interaction::CloseReason,
    notifier::Notifier,
    params::Fields,
    request::Request,
    session::Session,
    settings,
};

/// The longest `session_name`, in characters.
const MAX_SESSION_NAME: usize = 256;

/// Directories that are no workspace, and everything beneath those that end with `/`.
const SYSTEM_DIRS: &[&str] = &["/", "/usr", "/var", "/home", "/boot/", "/dev/", "/etc/", "/proc/", "/sys/"];

/// The answer to a call, and what begins once it is on its way.
pub(super) struct MethodReply {
    pub outcome: Result<Value, RpcError>,
    pub after_sending: Option<Box<dyn FnOnce() + Send>>,
}

impl From<Result<Value, RpcError>> for MethodReply {
    fn from(outcome: Result<Value, RpcError>) -> Self {
        Self { outcome, after_sending: None }
    }
}

/// Answers one call.
pub(super) async fn dispatch(
    connection: &Arc<Connection>,
    method: &str,
    params: Option<&str>,
    shut_down: bool,
) -> MethodReply {
    if method == "workspace/executeCommand" {
        return match editor_command(params) {
            Ok((method, params)) => {
                Box::pin(dispatch(connection, &method, params.as_deref(), shut_down)).await
            }
            Err(error) => Err(error).into(),
        };
    }
    if shut_down && method.starts_with("kaiak/") {
        return Err(Code::InvalidRequest.with(json!({"reason": "the server was shut down"}))).into();
    }
    let shared = &connection.shared;
    match method {
        "kaiak/session/create" => create(connection, params).await.into(),
        "kaiak/session/terminate" => terminate(shared, params).await.into(),
        "kaiak/session/status" => status(shared, params).into(),
        "kaiak/fix/generate" => match generate(connection, params).await {
            Ok((result, then)) => MethodReply { outcome: Ok(result), after_sending: Some(then) },
            Err(error) => Err(error).into(),
        },
        "kaiak/fix/cancel" => cancel(shared, params).await.into(),
        "kaiak/interaction/respond" => respond(shared, params).await.into(),
        _ => Err(Code::MethodNotFound.with(json!({"method": method}))).into(),
    }
}

/// The method of this API that an editor command stands for, and its parameters.
fn editor_command(params: Option<&str>) -> Result<(String, Option<String>), RpcError> {
    let fields = Fields::read(params, ["command", "arguments"])?;
    let command = fields.required_text("command")?;
    if !command.starts_with("kaiak/") {
        return Err(Code::MethodNotFound.with(json!({"method": command})));
    }
    let arguments = match fields.raw("arguments") {
        None => None,
        Some(raw) => {
            let (first, _) =
                super::params::items(raw.get(), 1).map_err(|_| bad_field("arguments", "is not an array"))?;
            first.first().map(|first| first.get().to_owned())
        }
    };
    Ok((command, arguments))
}

async fn create(connection: &Connection, params: Option<&str>) -> Result<Value, RpcError> {
    let shared = &connection.shared;
    let fields = Fields::read(params, ["workspace_path", "session_name", "configuration"])?;
    let path = fields.required_text("workspace_path")?;
    if fields.optional_text("session_name")?.is_some_and(|name| name.chars().count() > MAX_SESSION_NAME) {
        return Err(bad_field("session_name", format!("is longer than {MAX_SESSION_NAME} characters")));
    }
    let configuration = fields.optional_object("configuration")?;
    if !path.starts_with('/') || path.contains('\0') {
        return Err(bad_field("workspace_path", "is not an absolute path"));
    }
    let denied =
        |reason: &str| Code::WorkspaceAccessDenied.with(json!({"workspace_path": path, "reason": reason}));
    let place =
        shared.core.open_work_dir(PathBuf::from(&path)).await.map_err(|error| denied(&error.message))?;
    // The root has no name among those of a place.
    let dir = place.real_path().unwrap_or("/").to_owned();
    if is_system(&dir) {
        return Err(denied("this directory is not a workspace"));
    }
    ensure_session_slot(shared)?;
    let config = &shared.core.config().kaiak;
    let settings = settings::read(configuration, config, &shared.providers_without_key)?;
    shared
        .core
        .load_agent(config.agent.as_str())
        .await
        .map_err(|error| Code::SessionCreationFailed.with(json!({"reason": error.message})))?;
    let session = Session::new(place, dir.into(), settings, connection.cancel.clone());
    let result = json!({
        "session_id": session.id, "status": "created", "created_at": session.created_at(),
    });
    let id = session.id.clone();
    // Others may have taken the last place meanwhile.
    let _turn = shared.session_creation.lock().unwrap_or_else(PoisonError::into_inner);
    ensure_session_slot(shared)?;
    shared.sessions.insert(&id, Arc::new(session));
    Ok(result)
}

fn is_system(dir: &str) -> bool {
    SYSTEM_DIRS.iter().any(|system| match system.strip_suffix('/') {
        Some(tree) if !tree.is_empty() => dir == tree || dir.starts_with(system),
        _ => dir == *system,
    })
}

/// Sees that there is room for one more session; those whose client is gone make way.
fn ensure_session_slot(shared: &Shared) -> Result<(), RpcError> {
    let max = shared.core.config().kaiak.max_sessions;
    let mut live = shared.sessions.values();
    live.retain(|session| !session.is_terminated());
    if live.len() < max {
        return Ok(());
    }
    let oldest = live
        .iter()
        .filter_map(|session| Some((session.abandoned_since()?, session)))
        .min_by_key(|(at, _)| *at);
    match oldest {
        Some((_, session)) => {
            if session.terminate().is_ok() {
                shared.sessions.retire(&session.id);
            }
            Ok(())
        }
        None => Err(Code::ResourceExhausted.with(json!({
            "limit": "sessions", "max": max, "active": live.len(),
            "suggestion": "terminate a session with kaiak/session/terminate",
        }))),
    }
}

fn find_session(shared: &Shared, id: &str) -> Result<Arc<Session>, RpcError> {
    shared.sessions.find(id).ok_or_else(|| {
        Code::SessionNotFound.with(json!({
            "session_id": id, "suggestion": "Create a new session with kaiak/session/create",
        }))
    })
}

async fn terminate(shared: &Shared, params: Option<&str>) -> Result<Value, RpcError> {
    let id = Fields::read(params, ["session_id"])?.required_text("session_id")?;
    let session = find_session(shared, &id)?;
    let requests = session.terminate()?;
    for request in &requests {
        // One that is ending anyway is waited for, too.
        request.stop().ok();
    }
    for request in &requests {
        request.finished.cancelled().await;
    }
    shared.sessions.retire(&id);
    Ok(json!({
        "session_id": id, "status": "terminated", "message_count": session.message_count(),
        "terminated_at": clock::rfc3339_seconds(SystemTime::now()),
    }))
}

fn status(shared: &Shared, params: Option<&str>) -> Result<Value, RpcError> {
    let id = Fields::read(params, ["session_id"])?.required_text("session_id")?;
    find_session(shared, &id)?.status()
}

type StartWork = Box<dyn FnOnce() + Send>;

async fn generate(
    connection: &Arc<Connection>,
    params: Option<&str>,
) -> Result<(Value, StartWork), RpcError> {
    let shared = &connection.shared;
    let fields = Fields::read(params, ["session_id", "incidents", "migration_context"])?;
    let id = fields.required_text("session_id")?;
    let incidents = fields.raw("incidents").ok_or_else(|| bad_field("incidents", "is missing"))?;
    if !incidents.get().starts_with('[') {
        return Err(bad_field("incidents", "is not an array"));
    }
    let migration = fields.optional_object("migration_context")?.map(str::to_owned);
    let session = find_session(shared, &id)?;
    if session.is_terminated() {
        return Err(Code::SessionTerminated.with(json!({"session_id": id})));
    }
    if connection.cancel.is_cancelled() {
        return Err(Code::SessionNotReady.with(json!({"session_id": id, "reason": "the daemon is stopping"})));
    }
    let incidents = incident::parse_all(incidents)?;
    check_paths(shared, &session, &incidents).await?;
    let agent = shared
        .core
        .load_agent(shared.core.config().kaiak.agent.as_str())
        .await
        .map_err(|error| Code::AgentInitializationFailed.with(json!({"reason": error.message})))?;
    let request = Arc::new(Request::new(&connection.cancel_runs));
    session.add_request(&request, &connection.cancel)?;
    shared.requests.insert(&request.id, Arc::clone(&request));
    let result = json!({
        "request_id": request.id, "session_id": id, "status": "processing",
        "incident_count": incidents.len(), "created_at": clock::rfc3339_seconds(SystemTime::now()),
    });
    let voice = Notifier::new(Arc::clone(&session), Arc::clone(&request), connection.outbox.clone());
    let window = agent.context_size.unwrap_or(shared.core.config().context_size);
    let work = fix::FixInput { files: group_by_file(incidents), migration, context_window: window };
    let shared = Arc::clone(shared);
    let begin = move || drop(tokio::spawn(fix::run(shared, session, request, voice, work)));
    Ok((result, Box::new(begin)))
}

/// Sees that no incident is about a file outside of the workspace.
async fn check_paths(
    shared: &Shared,
    session: &Session,
    incidents: &[incident::Incident],
) -> Result<(), RpcError> {
    let mut seen = HashSet::new();
    let paths: Vec<String> = incidents
        .iter()
        .map(|incident| incident.file_path.clone())
        .filter(|path| seen.insert(path.clone()))
        .collect();
    let looked = shared.core.check_files(Arc::clone(&session.work_dir), paths.clone()).await;
    let looked = looked.map_err(|_| RpcError::from(Code::Internal))?;
    for (path, result) in paths.iter().zip(looked) {
        let index = || incidents.iter().position(|incident| incident.file_path == *path);
        match result {
            Err(FileError::OutsideWorkspace(_)) => {
                return Err(Code::WorkspaceAccessDenied.with(json!({
                    "file_path": path, "index": index(), "reason": "it leads out of the workspace",
                })));
            }
            Err(error @ (FileError::BadPath { .. } | FileError::Directory(_))) => {
                let mut wrong = bad_field("file_path", error.message());
                if let Some(data) = &mut wrong.data {
                    data["index"] = json!(index());
                }
                return Err(wrong);
            }
            // What cannot be read is told when its turn comes; what is not there may be made.
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

async fn cancel(shared: &Shared, params: Option<&str>) -> Result<Value, RpcError> {
    let id = Fields::read(params, ["request_id"])?.required_text("request_id")?;
    let request =
        shared.requests.find(&id).ok_or_else(|| Code::RequestNotFound.with(json!({"request_id": id})))?;
    request.stop()?;
    request.finished.cancelled().await;
    Ok(
        json!({"request_id": id, "status": "cancelled", "cancelled_at": clock::rfc3339_seconds(SystemTime::now())}),
    )
}

async fn respond(shared: &Shared, params: Option<&str>) -> Result<Value, RpcError> {
    let fields = Fields::read(params, ["interaction_id", "response_type", "response_data"])?;
    let id = fields.required_text("interaction_id")?;
    let response_type = fields.required_text("response_type")?;
    let data =
        fields.optional_object("response_data")?.ok_or_else(|| bad_field("response_data", "is missing"))?;
    let interaction = shared
        .interactions
        .find(&id)
        .ok_or_else(|| Code::InteractionNotFound.with(json!({"interaction_id": id})))?;
    // The fields that answers have, and not the whole of what was sent.
    let known = Fields::read(Some(data), ["approved", "comment", "selected_indices", "text"])?;
    let mut data = serde_json::Map::new();
    for (name, limit) in [
        ("approved", 16),
        ("comment", 64 * 1024),
        ("selected_indices", 64 * 1024),
        // Holds a text of 1 MiB however it is escaped.
        ("text", 6 * 1024 * 1024 + 2),
    ] {
        if let Some(raw) = known.raw(name).filter(|raw| raw.get().len() <= limit) {
            data.insert(name.to_owned(), serde_json::from_str(raw.get()).unwrap_or_default());
        }
    }
    let told = interaction.respond(&response_type, &Value::Object(data))?;
    match told.await {
        Ok(outcome) => outcome?,
        // The request ended before anything came of the answer.
        Err(_) => return Err(interaction.already_closed(CloseReason::Cancelled)),
    }
    Ok(
        json!({"interaction_id": id, "status": "processed", "responded_at": clock::rfc3339_seconds(SystemTime::now())}),
    )
}
