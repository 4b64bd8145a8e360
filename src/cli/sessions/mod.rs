//! `kontekst sessions`: the stored conversations.

mod show;
mod subagents;

use std::{
    io::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::Subcommand;
use serde_json::{Value, json};

use super::{error::CliError, printable::PrintableWriter, table::Table};
use crate::{
    config::{AgentConfig, Home},
    core::{Name, SessionId},
    sessions::{SessionError, SessionSummary, Sessions},
    subagent_log::SubagentLogs,
};

/// List, show, choose and delete conversations
///
/// A session is a conversation in ~/.kontekst/sessions. `kontekst run` continues the active one
/// unless --session names another. Where an ID is asked for, its first characters are enough if no
/// other session starts with them, and `last` is the session that was written last.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kontekst sessions
  kontekst sessions show last
  kontekst sessions use 0198c2
  kontekst sessions workers --watch
  kontekst sessions delete 0198c2 0198c3
  kontekst sessions set-agent coder")]
pub struct Args {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the sessions, newest first (what `sessions` alone does)
    List {
        /// Those of workers, too
        #[arg(long)]
        all: bool,
    },
    /// Print a conversation
    Show {
        /// The session; the active one when left out
        id: Option<String>,
    },
    /// List the workers that a session's runs have started
    ///
    /// A worker is a run that a model started, with a session of its own. It needs `workers = true` in the
    /// agent's config.toml or `kontekst run --workers`.
    Workers {
        /// The session; the active one when left out
        id: Option<String>,
        /// Print what they did and do, a line each time, until it is interrupted
        #[arg(short, long)]
        watch: bool,
    },
    /// Make a session the one that `kontekst run` continues
    Use {
        /// The session
        id: String,
    },
    /// Delete sessions for good, and those of their workers
    Delete {
        /// The sessions
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Delete the active session too; no session is active then
        #[arg(long)]
        force: bool,
    },
    /// Choose the agent that runs of a session use
    SetAgent {
        /// The agent, as `kontekst agents` lists it
        name: Name,
        /// The session; the active one when left out
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

/// Reads and writes the disk only. `terminal` says whether `out` is one.
///
/// # Errors
///
/// Exit code 2 for a session or an agent that does not exist, 1 for a session that is in use.
pub fn run(args: Args, home: &Home, out: &mut dyn Write, terminal: bool) -> Result<(), CliError> {
    let Args { json, command } = args;
    home.create()?;
    let sessions = Sessions::new(home);
    let mut out = PrintableWriter::new(out, terminal);
    match command.unwrap_or(Command::List { all: false }) {
        Command::List { all } => list(&sessions, all, json, &mut out),
        Command::Show { id } => {
            let id = resolve_or_active(&sessions, id.as_deref())?;
            let listed = sessions.list()?.into_iter().find(|session| session.id == id);
            let session = listed.ok_or_else(|| SessionError::NotFound(id.to_string()))?;
            let workers = subagents::subagents_of(&sessions, &SubagentLogs::new(home), &id)?;
            if json {
                show::write_json(&sessions, &session, &workers, &mut out)
            } else {
                show::write_text(&sessions, &session, &workers, &mut out)
            }
        }
        Command::Workers { id, watch } => {
            let teams = SubagentLogs::new(home);
            // A conversation that its client keeps has workers and no session.
            let team = id.as_deref().and_then(|id| id.parse().ok()).filter(|id| teams.exists(id));
            let id = team.map_or_else(|| resolve_or_active(&sessions, id.as_deref()), Ok)?;
            if watch {
                subagents::watch(home, &sessions, &teams, &id, json, &mut out)
            } else {
                subagents::list(&subagents::subagents_of(&sessions, &teams, &id)?, json, &mut out)
            }
        }
        Command::Use { id } => {
            let id = sessions.resolve(&id)?;
            sessions.set_active(&id)?;
            Ok(writeln!(out, "session {id} is active")?)
        }
        Command::Delete { ids, force } => delete(&sessions, &SubagentLogs::new(home), &ids, force, &mut out),
        Command::SetAgent { name, session } => {
            AgentConfig::load(home, &name)?;
            let id = resolve_or_active(&sessions, session.as_deref())?;
            sessions.set_default_agent(&id, &name)?;
            Ok(writeln!(out, "session {id} uses agent {name}")?)
        }
    }
}

fn resolve_or_active(sessions: &Sessions, given: Option<&str>) -> Result<SessionId, CliError> {
    match given {
        Some(text) => Ok(sessions.resolve(text)?),
        None => sessions.active().ok_or_else(|| {
            CliError::usage("no session is active")
                .hint("name one (`kontekst sessions` lists them), or make one active with `kontekst sessions use ID`")
        }),
    }
}

/// All are looked up before the first is deleted, so that a typing error deletes nothing.
fn delete(
    sessions: &Sessions,
    teams: &SubagentLogs,
    ids: &[String],
    force: bool,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let mut found = Vec::new();
    for text in ids {
        let id = sessions.resolve(text)?;
        if !force && sessions.active().as_ref() == Some(&id) {
            return Err(SessionError::Active(id).into());
        }
        if !found.contains(&id) {
            found.push(id);
        }
    }
    for id in found {
        // Given twice, as a session and as a worker of another one.
        if !sessions.exists(&id) {
            continue;
        }
        let workers = descendants(sessions, &id)?;
        for worker in &workers {
            sessions.delete(worker, force)?;
        }
        teams.delete(&id)?;
        sessions.delete(&id, force)?;
        match workers.len() {
            0 => writeln!(out, "deleted {id}")?,
            1 => writeln!(out, "deleted {id} and its worker")?,
            count => writeln!(out, "deleted {id} and its {count} workers")?,
        }
    }
    Ok(())
}

/// The sessions of a session's workers and of theirs.
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

fn list(sessions: &Sessions, all: bool, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let mut listed = sessions.list()?;
    let total = listed.len();
    listed.retain(|session| all || session.parent.is_none());
    let hidden = total - listed.len();
    if json {
        let listed: Vec<Value> = listed.iter().map(to_json).collect();
        return Ok(writeln!(out, "{:#}", Value::from(listed))?);
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
            format_size(session.bytes),
            format_age(now, session.modified),
        ]);
    }
    table.write(out)?;
    if hidden > 0 {
        writeln!(out, "\nNot listed: {hidden} of workers (--all).")?;
    }
    Ok(())
}

fn to_json(session: &SessionSummary) -> Value {
    let modified = session.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "id": session.id,
        "active": session.active,
        "default_agent": session.default_agent,
        "parent": session.parent,
        "bytes": session.bytes,
        // Unix time, as in the session files.
        "modified_ms": u64::try_from(modified.as_millis()).unwrap_or(u64::MAX),
    })
}

fn format_size(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let exact = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..0x10_0000 => format!("{:.1}K", exact / KIB),
        0x10_0000..0x4000_0000 => format!("{:.1}M", exact / KIB / KIB),
        _ => format!("{:.1}G", exact / KIB / KIB / KIB),
    }
}

fn format_age(now: SystemTime, then: SystemTime) -> String {
    let seconds = now.duration_since(then).unwrap_or(Duration::ZERO).as_secs();
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
