//! The arguments that say what answers, in which session, and where.

use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use crate::{
    cli::{error::CliError, working_dir},
    config::{Config, Home},
    core::{Environment, SessionId},
    jobs,
    pb::{CallerEnvironment, StartRunCommand},
    sessions::Sessions,
    tools::passed_on,
};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model and session")]
pub(in crate::cli) struct SettingsArgs {
    /// The agent that answers [default: the agent of the session, or else `default`]
    #[arg(short, long, value_name = "NAME")]
    agent: Option<String>,

    /// The model for this run, by the name of its file or the name that your model server knows [default: that of the agent]
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,

    /// The system prompt for this run, instead of that of the agent
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,

    /// Offer no tools to the model, for questions that need no files
    #[arg(long, conflicts_with_all = ["workers", "bare"])]
    no_tools: bool,

    /// The session to continue, by its ID or its title; a new ID starts a session [default: the active session]
    #[arg(short, long, value_name = "ID", conflicts_with = "new")]
    session: Option<String>,

    /// Continue the active session, or else the newest one; an error if there is none
    #[arg(short, long = "continue", conflicts_with_all = ["session", "new"])]
    continues: bool,

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
    /// Returns the sessions of which that of the run becomes the active one, unless another one was named.
    pub(in crate::cli) fn makes_active(&self, sessions: Sessions) -> Option<Sessions> {
        self.session.is_none().then_some(sessions)
    }

    /// Returns the sessions as a command in the working directory sees them. Reads `config.toml`.
    pub(in crate::cli) fn sessions(&self, home: &Home) -> Result<Sessions, CliError> {
        let dir = working_dir::chosen_or_current(self.working_dir.clone())?;
        Ok(Sessions::in_directory(home, Path::new(&dir)))
    }

    /// Makes the command that starts a run with these settings, without a prompt.
    pub(in crate::cli) fn start_command(
        &self,
        sessions: &Sessions,
        home: &Home,
        environment: &Environment,
    ) -> Result<StartRunCommand, CliError> {
        let session = match &self.session {
            Some(text) => Some(match sessions.existing(text)? {
                Some(id) => id,
                None => text.parse::<SessionId>().map_err(|error| CliError::usage(error.to_string()))?,
            }),
            None if self.new => None,
            None if self.continues && sessions.active().is_none() => Some(sessions.resolve("last")?),
            None => sessions.active(),
        };
        Ok(StartRunCommand {
            session_id: session.map(|id| id.to_string()).unwrap_or_default(),
            agent_name: self.agent.clone().unwrap_or_default(),
            working_dir: working_dir::chosen_or_current(self.working_dir.clone())?,
            workers: self.workers,
            bare: self.bare,
            // Files that the model may read can also come with the prompt.
            opening: !self.no_tools,
            commands: !self.no_tools,
            no_tools: self.no_tools,
            model: self.model.clone().unwrap_or_default(),
            system_prompt: self.system.clone().unwrap_or_default(),
            caller: Some(caller(home, environment)),
            ..StartRunCommand::default()
        })
    }
}

/// Returns what commands of a run get of this process.
#[allow(clippy::useless_conversion, reason = "the type differs by system")]
fn caller(home: &Home, environment: &Environment) -> CallerEnvironment {
    let extra = Config::read_for_client(home, "environment").commands.environment;
    // It can only be read by setting it.
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(umask);
    let of_job = environment.text(jobs::UMASK).and_then(|digits| u32::from_str_radix(&digits, 8).ok());
    CallerEnvironment {
        variables: passed_on(environment, &extra).collect(),
        umask: Some(of_job.unwrap_or_else(|| u32::from(umask.as_raw_mode()))),
    }
}
