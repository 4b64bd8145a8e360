//! `kontekst sessions`: the stored conversations.

mod delete;
mod list;
mod show;
mod subagents;

use std::io::Write;

use clap::Subcommand;

use super::{error::CliError, printable::PrintableWriter};
use crate::{
    config::{AgentConfig, Home},
    core::{Name, SessionId},
    sessions::{SessionError, Sessions},
    subagent_log::SubagentLogs,
};
use delete::delete;
use list::list;

/// List, show, choose and delete conversations
///
/// A session is a conversation in ~/.kontekst/sessions. `kontekst run` continues the active session unless
/// --session names another one. An ID can be shortened to its first characters if no other session starts
/// with them. `last` means the session that was written last.
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
    /// List the sessions, newest first; the default if no command is given
    List {
        /// List the sessions of workers, too
        #[arg(long)]
        all: bool,
    },
    /// Print a conversation
    Show {
        /// The session [default: the active one]
        id: Option<String>,
    },
    /// List the workers that a session's runs have started
    ///
    /// A worker is a run that a model started. It has a session of its own. A model can start workers if its
    /// agent has `workers = true` in config.toml, or in a run with `kontekst run --workers`.
    Workers {
        /// The session [default: the active one]
        id: Option<String>,
        /// Print a line for everything that they did and do, until you press Ctrl-C
        #[arg(short, long)]
        watch: bool,
    },
    /// Choose the session that `kontekst run` continues
    Use {
        /// The session
        id: String,
    },
    /// Delete sessions and the sessions of their workers; this cannot be undone
    Delete {
        /// The sessions
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Delete the active session, too; no session is active then
        #[arg(long)]
        force: bool,
    },
    /// Choose the agent that runs of a session use
    SetAgent {
        /// The name of the agent in `kontekst agents`
        name: Name,
        /// The session [default: the active one]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

/// Runs the command on the files of the data directory. Only `workers --watch` asks the daemon.
///
/// # Errors
///
/// The exit status is 2 for a session or an agent that does not exist, and 1 for a session that is in use.
pub fn run(args: Args, home: &Home, out: &mut dyn Write, is_terminal: bool) -> Result<(), CliError> {
    let Args { json, command } = args;
    home.create()?;
    let sessions = Sessions::new(home);
    let mut out = PrintableWriter::new(out, is_terminal);
    match command.unwrap_or(Command::List { all: false }) {
        Command::List { all } => list(&sessions, all, json, &mut out),
        Command::Show { id } => {
            let id = resolve_or_active(&sessions, id.as_deref())?;
            let listed = sessions.list()?.into_iter().find(|session| session.id == id);
            let session = listed.ok_or_else(|| SessionError::NotFound(id.to_string()))?;
            let subagents = subagents::subagents_of(&sessions, &SubagentLogs::new(home), &id)?;
            if json {
                show::write_json(&sessions, &session, &subagents, &mut out)
            } else {
                show::write_text(&sessions, &session, &subagents, &mut out)
            }
        }
        Command::Workers { id, watch } => {
            let logs = SubagentLogs::new(home);
            // A conversation that its client stores has a log of subagents and no session.
            let logged = id.as_deref().and_then(|id| id.parse().ok()).filter(|id| logs.exists(id));
            let id = logged.map_or_else(|| resolve_or_active(&sessions, id.as_deref()), Ok)?;
            if watch {
                subagents::watch(home, &sessions, &logs, &id, json, &mut out)
            } else {
                subagents::list(&subagents::subagents_of(&sessions, &logs, &id)?, json, &mut out)
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

/// Returns the session that the user named, or the active one.
fn resolve_or_active(sessions: &Sessions, named: Option<&str>) -> Result<SessionId, CliError> {
    match named {
        Some(text) => Ok(sessions.resolve(text)?),
        None => sessions.active().ok_or_else(|| {
            CliError::usage("no session is active")
                .hint("name a session (`kontekst sessions` lists them), or choose one with `kontekst sessions use ID`")
        }),
    }
}

#[cfg(test)]
mod tests;
