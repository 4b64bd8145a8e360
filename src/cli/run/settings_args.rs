//! The arguments that say what answers, in which session, and where.

use std::path::PathBuf;

use crate::{
    cli::{error::CliError, working_dir},
    config::Home,
    core::SessionId,
    pb::StartRunCommand,
    sessions::Sessions,
};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model and session")]
pub(in crate::cli) struct SettingsArgs {
    /// The agent that answers [default: the agent of the session, or else `default`]
    #[arg(short, long, value_name = "NAME")]
    agent: Option<String>,

    /// The session to continue, by its ID or its title; a new ID starts a session [default: the active session]
    #[arg(short, long, value_name = "ID", conflicts_with = "new")]
    session: Option<String>,

    /// Start a new session and make it the active one
    #[arg(short, long)]
    new: bool,

    /// The directory in which file tools work [default: the current directory]
    #[arg(short = 'C', long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    working_dir: Option<PathBuf>,

    /// Let the model start workers: runs of its own, within the limits of `[workers]` in config.toml
    #[arg(long)]
    workers: bool,

    /// Turn all rails off and let the model call tools in the API's own way, for comparisons
    #[arg(long)]
    bare: bool,
}

impl SettingsArgs {
    /// Returns true if the session of the run becomes the active one, because no other was named.
    pub(super) fn makes_active(&self) -> bool {
        self.session.is_none()
    }

    /// Makes the command that starts a run with these settings, without a prompt.
    pub(super) fn start_command(&self, home: &Home) -> Result<StartRunCommand, CliError> {
        let sessions = Sessions::new(home);
        let session = match &self.session {
            Some(text) => Some(match sessions.existing(text)? {
                Some(id) => id,
                None => text.parse::<SessionId>().map_err(|error| CliError::usage(error.to_string()))?,
            }),
            None if self.new => None,
            None => sessions.active(),
        };
        Ok(StartRunCommand {
            session_id: session.map(|id| id.to_string()).unwrap_or_default(),
            agent_name: self.agent.clone().unwrap_or_default(),
            working_dir: working_dir::chosen_or_current(self.working_dir.clone())?,
            workers: self.workers,
            bare: self.bare,
            ..StartRunCommand::default()
        })
    }
}
