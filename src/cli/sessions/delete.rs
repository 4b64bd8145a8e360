//! `kontekst sessions delete`.

use std::io::Write;

use super::named::named;
use crate::{
    cli::error::CliError,
    core::SessionId,
    sessions::{SessionError, SessionSummary, Sessions},
    subagent_log::SubagentLogs,
};

/// Deletes sessions with those of their subagents. All ids are resolved before the first session is deleted,
/// so that a typing error deletes nothing.
pub(super) fn delete(
    sessions: &Sessions,
    logs: &SubagentLogs,
    ids: &[String],
    force: bool,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let mut found = Vec::new();
    for text in ids {
        let id = named(sessions, text)?;
        if !force && sessions.active().as_ref() == Some(&id) {
            return Err(SessionError::Active(id).into());
        }
        if !found.contains(&id) {
            found.push(id);
        }
    }
    for id in found {
        // It can be gone already, as a subagent of a session that was named before it.
        if !sessions.exists(&id) {
            continue;
        }
        let family = family(&sessions.list()?, &id);
        delete_family(sessions, logs, &family, force)?;
        match family.len() - 1 {
            0 => writeln!(out, "deleted {id}")?,
            1 => writeln!(out, "deleted {id} and its worker")?,
            count => writeln!(out, "deleted {id} and its {count} workers")?,
        }
    }
    Ok(())
}

/// Deletes a session, which is the first of its family, after the sessions of its subagents.
pub(super) fn delete_family(
    sessions: &Sessions,
    logs: &SubagentLogs,
    family: &[SessionId],
    force: bool,
) -> Result<(), CliError> {
    let [id, subagents @ ..] = family else { return Ok(()) };
    for subagent in subagents {
        sessions.delete(subagent, force)?;
    }
    logs.delete(id)?;
    Ok(sessions.delete(id, force)?)
}

/// Returns a session and the sessions of all subagents below it.
pub(super) fn family(listed: &[SessionSummary], id: &SessionId) -> Vec<SessionId> {
    let mut family = vec![id.clone()];
    let mut at = 0;
    while let Some(parent) = family.get(at).cloned() {
        let children = listed.iter().filter(|session| session.parent.as_ref() == Some(&parent));
        let new: Vec<SessionId> =
            children.map(|session| session.id.clone()).filter(|id| !family.contains(id)).collect();
        family.extend(new);
        at += 1;
    }
    family
}
