//! `kontekst sessions list`.

use std::{
    io::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    cli::{
        error::CliError,
        json::json_pretty,
        table::Table,
        units::{age, short_bytes},
    },
    core::Name,
    sessions::{SessionSummary, Sessions},
};

/// Lists the sessions, those of subagents only if `all` is set.
pub(super) fn list(sessions: &Sessions, all: bool, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let mut listed = sessions.list()?;
    // A file without a byte is left by a run that could store nothing, unless somebody has chosen the session.
    listed.retain(|session| session.bytes > 0 || session.active || session.default_agent.is_some());
    let total = listed.len();
    listed.retain(|session| all || session.parent.is_none());
    let hidden = total - listed.len();
    if json {
        let listed: Vec<Value> = listed.iter().map(to_json).collect();
        return Ok(writeln!(out, "{}", json_pretty(&Value::from(listed)))?);
    }
    if listed.is_empty() {
        return Ok(writeln!(out, "No sessions. `kontekst run \"…\"` starts one.")?);
    }
    let now = SystemTime::now();
    let mut table = Table::new(["", "SESSION ID", "AGENT", "SIZE", "MODIFIED"]);
    for session in listed {
        table.row([
            if session.active { "*" } else { "" }.to_owned(),
            session.id.to_string(),
            session.default_agent.as_ref().map_or("-", Name::as_str).to_owned(),
            short_bytes(session.bytes),
            age(now, session.modified),
        ]);
    }
    table.write(out)?;
    if hidden > 0 {
        writeln!(out, "\nNot listed: {hidden} of workers (--all).")?;
    }
    Ok(())
}

pub(super) fn to_json(session: &SessionSummary) -> Value {
    let modified = session.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "id": session.id,
        "active": session.active,
        "default_agent": session.default_agent,
        "parent": session.parent,
        "bytes": session.bytes,
        // Unix time in milliseconds, as in the session files.
        "modified_ms": u64::try_from(modified.as_millis()).unwrap_or(u64::MAX),
    })
}
