//! `kaiak/fix/generate` and `kaiak/fix/cancel`.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use kontekst_core::clock;
use kontekst_store::config::FALLBACK_CONTEXT_SIZE;
use kontekst_tools::FileError;

use super::{
    super::{
        Shared,
        error::{Code, RpcError, bad_field},
        fix::{self, FixInput},
        incident::{self, Incident, group_by_file},
        notifier::Notifier,
        params::Fields,
        request::Request,
        session::Session,
    },
    CallContext, MethodReply,
    session::find,
};

/// Checks a request. Its work begins when the reply has been sent.
pub(super) async fn generate(context: &CallContext, params: Option<&str>) -> Result<MethodReply, RpcError> {
    let shared = &context.shared;
    let fields = Fields::read(params, ["session_id", "incidents", "migration_context"])?;
    let id = fields.required_text("session_id")?;
    let incidents = fields.raw("incidents").ok_or_else(|| bad_field("incidents", "is missing"))?;
    if !incidents.get().starts_with('[') {
        return Err(bad_field("incidents", "is not an array"));
    }
    let migration = fields.optional_object("migration_context")?.map(str::to_owned);
    let session = find(shared, &id)?;
    if session.is_terminated() {
        return Err(Code::SessionTerminated.with(json!({"session_id": id})));
    }
    if context.connection.is_cancelled() {
        return Err(Code::SessionNotReady.with(json!({"session_id": id, "reason": "the daemon is stopping"})));
    }
    let incidents = incident::parse_all(incidents)?;
    check_paths(shared, &session, &incidents).await?;
    let agent = shared
        .core
        .load_agent(shared.core.config().kaiak.agent.as_str())
        .await
        .map_err(|error| Code::AgentInitializationFailed.with(json!({"reason": error.message})))?;
    let request = Arc::new(Request::new(&context.runs));
    session.add_request(&request, &context.connection)?;
    shared.requests.insert(&request.id, Arc::clone(&request));
    let result = json!({
        "request_id": request.id, "session_id": id, "status": "processing",
        "incident_count": incidents.len(), "created_at": clock::rfc3339_seconds(SystemTime::now()),
    });
    let notifier = Notifier::new(Arc::clone(&session), Arc::clone(&request), context.outbox.clone());
    let context_window =
        agent.context_size.or(shared.core.config().context_size).unwrap_or(FALLBACK_CONTEXT_SIZE);
    let input = FixInput { files: group_by_file(incidents), migration, context_window };
    let shared = Arc::clone(shared);
    let start = move || drop(tokio::spawn(fix::run(shared, session, request, notifier, input)));
    Ok(MethodReply { result, after_sending: Some(Box::new(start)) })
}

/// Checks that no incident is about a directory or about a file outside the workspace.
async fn check_paths(shared: &Shared, session: &Session, incidents: &[Incident]) -> Result<(), RpcError> {
    let mut seen = HashSet::new();
    let paths: Vec<String> = incidents
        .iter()
        .map(|incident| incident.file_path.clone())
        .filter(|path| seen.insert(path.clone()))
        .collect();
    let checked = shared.core.check_files(Arc::clone(&session.work_dir), paths.clone()).await;
    let checked = checked.map_err(|_| RpcError::from(Code::Internal))?;
    for (path, result) in paths.iter().zip(checked) {
        let index = || incidents.iter().position(|incident| incident.file_path == *path);
        match result {
            Err(FileError::OutsideWorkspace(_)) => {
                return Err(Code::WorkspaceAccessDenied.with(json!({
                    "file_path": path, "index": index(), "reason": "it leads out of the workspace",
                })));
            }
            Err(error @ (FileError::BadPath { .. } | FileError::Directory(_))) => {
                let mut error = bad_field("file_path", error.message());
                if let Some(data) = &mut error.data {
                    data["index"] = json!(index());
                }
                return Err(error);
            }
            // A missing file may be created by the fix. Other errors are reported when the file is read.
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

pub(super) async fn cancel(shared: &Shared, params: Option<&str>) -> Result<Value, RpcError> {
    let id = Fields::read(params, ["request_id"])?.required_text("request_id")?;
    let request =
        shared.requests.find(&id).ok_or_else(|| Code::RequestNotFound.with(json!({"request_id": id})))?;
    request.stop()?;
    request.finished.cancelled().await;
    let cancelled_at = clock::rfc3339_seconds(SystemTime::now());
    Ok(json!({"request_id": id, "status": "cancelled", "cancelled_at": cancelled_at}))
}
