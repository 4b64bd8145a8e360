//! `kaiak/session/create`, `kaiak/session/terminate` and `kaiak/session/status`.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use kontekst_core::clock;

use super::{
    super::{
        Shared,
        error::{Code, RpcError, bad_field},
        params::Fields,
        session::Session,
        settings,
    },
    CallContext,
};

/// The longest `session_name`, in characters.
const MAX_SESSION_NAME: usize = 256;

/// Directories that cannot be a workspace. Where the name ends with `/`, the directories in it cannot be one either.
const SYSTEM_DIRS: &[&str] = &["/", "/usr", "/var", "/home", "/boot/", "/dev/", "/etc/", "/proc/", "/sys/"];

pub(super) async fn create(context: &CallContext, params: Option<&str>) -> Result<Value, RpcError> {
    let shared = &context.shared;
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
    let work_dir =
        shared.core.open_work_dir(PathBuf::from(&path)).await.map_err(|error| denied(&error.message))?;
    // Only the root directory has no real path of its own.
    let real_path = work_dir.real_path().unwrap_or("/").to_owned();
    if is_system_dir(&real_path) || is_user_home(shared, &real_path).await {
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
    let session = Session::new(work_dir, real_path.into(), settings, context.connection.clone());
    let result = json!({
        "session_id": session.id, "status": "created", "created_at": session.created_at(),
    });
    let id = session.id.clone();
    // Another call may have taken the last slot in the meantime.
    let _creating = shared.session_creation.lock();
    ensure_session_slot(shared)?;
    shared.sessions.insert(&id, Arc::new(session));
    Ok(result)
}

fn is_system_dir(dir: &str) -> bool {
    SYSTEM_DIRS.iter().any(|system| match system.strip_suffix('/') {
        Some(tree) if !tree.is_empty() => dir == tree || dir.starts_with(system),
        _ => dir == *system,
    })
}

/// Returns true for the home directory itself: everything of the user would be one workspace.
async fn is_user_home(shared: &Shared, dir: &str) -> bool {
    let Some(home) = shared.core.home().user_home() else { return false };
    let home = shared.core.open_work_dir(home.to_owned()).await;
    home.is_ok_and(|home| home.real_path() == Some(dir))
}

/// Makes sure that one more session may exist. If there are too many, the one whose client has been gone the longest
/// is terminated.
///
/// # Errors
///
/// [`Code::ResourceExhausted`] if all sessions are in use.
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

pub(super) fn find(shared: &Shared, id: &str) -> Result<Arc<Session>, RpcError> {
    shared.sessions.find(id).ok_or_else(|| {
        Code::SessionNotFound.with(json!({
            "session_id": id, "suggestion": "Create a new session with kaiak/session/create",
        }))
    })
}

pub(super) async fn terminate(shared: &Shared, params: Option<&str>) -> Result<Value, RpcError> {
    let id = Fields::read(params, ["session_id"])?.required_text("session_id")?;
    let session = find(shared, &id)?;
    let requests = session.terminate()?;
    for request in &requests {
        // A request that is ending already is not an error. Its end is awaited like the others'.
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

pub(super) fn status(shared: &Shared, params: Option<&str>) -> Result<Value, RpcError> {
    let id = Fields::read(params, ["session_id"])?.required_text("session_id")?;
    find(shared, &id)?.status()
}
