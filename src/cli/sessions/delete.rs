//! `kontekst sessions delete`.

use std::io::Write;

use super::named::named;
use crate::{
    cli::error::CliError,
    core::SessionId,
    sessions::{SessionError, Sessions},
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
        let subagents = descendants(sessions, &id)?;
        for subagent in &subagents {
            sessions.delete(subagent, force)?;
        }
        logs.delete(&id)?;
        sessions.delete(&id, force)?;
        match subagents.len() {
            0 => writeln!(out, "deleted {id}")?,
            1 => writeln!(out, "deleted {id} and its worker")?,
            count => writeln!(out, "deleted {id} and its {count} workers")?,
        }
    }
    Ok(())
}

/// Returns the sessions of all subagents below a session.
fn descendants(sessions: &Sessions, id: &SessionId) -> Result<Vec<SessionId>, CliError> {
    let listed = sessions.list()?;
    let mut family = vec![id];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        let children = listed.iter().filter(|session| session.parent.as_ref() == Some(parent));
        let new: Vec<&SessionId> =
            children.map(|session| &session.id).filter(|id| !family.contains(id)).collect();
        family.extend(new);
        at += 1;
    }
    Ok(family.into_iter().skip(1).cloned().collect())
}
