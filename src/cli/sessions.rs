//! `kontekst sessions`: the stored conversations.

mod show;

use std::{
    io::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::Subcommand;
use serde_json::{Value, json};

use super::{error::CliError, printable::Page, table::Table};
use crate::{
    config::{AgentConfig, Home},
    core::{Name, SessionId},
    sessions::{SessionError, SessionSummary, Sessions},
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
    List,
    /// Print a conversation
    Show {
        /// The session; the active one when left out
        id: Option<String>,
    },
    /// Make a session the one that `kontekst run` continues
    Use {
        /// The session
        id: String,
    },
    /// Delete sessions for good
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
    let mut out = Page::new(out, terminal);
    match command.unwrap_or(Command::List) {
        Command::List => list(&sessions, json, &mut out),
        Command::Show { id } => {
            let id = given_or_active(&sessions, id.as_deref())?;
            let listed = sessions.list()?.into_iter().find(|session| session.id == id);
            let session = listed.ok_or_else(|| SessionError::NotFound(id.to_string()))?;
            if json {
                show::json(&sessions, &session, &mut out)
            } else {
                show::text(&sessions, &session, &mut out)
            }
        }
        Command::Use { id } => {
            let id = sessions.resolve(&id)?;
            sessions.set_active(&id)?;
            Ok(writeln!(out, "session {id} is active")?)
        }
        Command::Delete { ids, force } => delete(&sessions, &ids, force, &mut out),
        Command::SetAgent { name, session } => {
            AgentConfig::load(home, &name)?;
            let id = given_or_active(&sessions, session.as_deref())?;
            sessions.set_default_agent(&id, &name)?;
            Ok(writeln!(out, "session {id} uses agent {name}")?)
        }
    }
}

fn given_or_active(sessions: &Sessions, given: Option<&str>) -> Result<SessionId, CliError> {
    match given {
        Some(text) => Ok(sessions.resolve(text)?),
        None => sessions.active().ok_or_else(|| {
            CliError::usage("no session is active")
                .hint("name one (`kontekst sessions` lists them), or make one active with `kontekst sessions use ID`")
        }),
    }
}

/// All are looked up before the first is deleted, so that a typing error deletes nothing.
fn delete(sessions: &Sessions, ids: &[String], force: bool, out: &mut dyn Write) -> Result<(), CliError> {
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
        sessions.delete(&id, force)?;
        writeln!(out, "deleted {id}")?;
    }
    Ok(())
}

fn list(sessions: &Sessions, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let listed = sessions.list()?;
    if json {
        let listed: Vec<Value> = listed.iter().map(described).collect();
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
            size(session.bytes),
            age(now, session.modified),
        ]);
    }
    Ok(table.write(out)?)
}

fn described(session: &SessionSummary) -> Value {
    let modified = session.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "id": session.id,
        "active": session.active,
        "default_agent": session.default_agent,
        "bytes": session.bytes,
        // Unix time, as in the session files.
        "modified_ms": u64::try_from(modified.as_millis()).unwrap_or(u64::MAX),
    })
}

fn size(bytes: u64) -> String {
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

fn age(now: SystemTime, then: SystemTime) -> String {
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
