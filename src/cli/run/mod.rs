//! `kontekst run`: sends one prompt and shows its run until the end.

mod allowed;
mod approval_prompt;
mod approver;
mod command_output;
mod connection;
mod held_answer;
mod progress;
mod prompt;
mod question;
mod renderer;

use std::{io, path::PathBuf, process::ExitCode};

use crate::{
    cli::{error::CliError, output::Verbosity, working_dir},
    client,
    config::Home,
    core::{Environment, SessionId},
    pb::{ListChangedRunsRequest, StartRunCommand, run_event::Event},
    sessions::Sessions,
};

use allowed::Allowed;
use approver::{Approver, OnDeny, Policy};
use connection::{RunConnection, RunConnectionError};
use prompt::{StdinUse, read_prompt};
use renderer::{Format, RunRenderer};

/// Send a prompt to the model and print the answer
///
/// The prompt is the words of the command line, or stdin, or both. If it is both, stdin comes first and the
/// words are the instruction. A prompt that starts with /NAME invokes a skill.
///
/// The answer is printed to stdout as it arrives, and nothing else is printed there. If the prompt asks for a change of
/// files and stdout is no terminal, it is printed once it is certain that the answer counts. Files below the working
/// directory are read and listed without a question, unless their names say that they hold secrets or settings.
/// Every other tool call is shown with a preview, and you are asked about it on the terminal. Without a terminal
/// it is denied (exit status 3), unless --allow or --auto-approve approves it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:
  kontekst run \"what does this project do?\"
  git diff | kontekst run \"review this change\"
  kontekst run --new \"let us start over\"
  kontekst run --allow edit_file \"fix the typo in README.md\"
  kontekst run --check \"pytest -q\" \"fix the rounding in report.py\"
  kontekst run /summarize README.md
  answer=$(kontekst run --quiet \"one word: the capital of France\")",
    after_long_help = "Examples:
  kontekst run \"what does this project do?\"
  git diff | kontekst run \"review this change\"
  kontekst run --new \"let us start over\"
  kontekst run --allow edit_file \"fix the typo in README.md\"
  kontekst run --check \"pytest -q\" \"fix the rounding in report.py\"
  kontekst run /summarize README.md
  answer=$(kontekst run --quiet \"one word: the capital of France\")

cron has no terminal and sets few variables. Set PATH, choose a session for the job, and allow the tools that it needs:
  PATH=/home/ada/.local/bin:/usr/bin:/bin
  0 7 * * * cd ~/notes && kontekst run -q --session daily --allow web_fetch /digest > digest.md"
)]
pub(super) struct Args {
    /// The prompt; `-` reads it from stdin
    #[arg(value_name = "PROMPT", trailing_var_arg = true)]
    words: Vec<String>,

    /// The agent that answers [default: the agent of the session, or else `default`]
    #[arg(short, long, value_name = "NAME")]
    agent: Option<String>,

    /// The session to continue; it is created if it does not exist [default: the active session]
    #[arg(short, long, value_name = "ID", conflicts_with = "new")]
    session: Option<String>,

    /// Start a new session and make it the active one
    #[arg(short, long)]
    new: bool,

    /// The directory in which file tools work [default: the current directory]
    #[arg(short = 'C', long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    working_dir: Option<PathBuf>,

    /// Approve every tool call, except writes to files that run code or hold settings
    #[arg(long)]
    auto_approve: bool,

    /// Approve calls of these tools without asking; `run_command(cargo test)` means the commands that begin with these words
    #[arg(long, value_name = "TOOL")]
    allow: Vec<String>,

    /// Run this command after the model has changed files; if it fails, the model reads why and goes on, at most three times
    #[arg(long, value_name = "COMMAND")]
    check: Vec<String>,

    /// Let the model start workers: runs of its own, within the limits of `[workers]` in config.toml
    #[arg(long)]
    workers: bool,

    /// Turn all rails off and let the model call tools in the API's own way, for comparisons
    #[arg(long)]
    bare: bool,

    /// What happens after a tool call was denied
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnDeny::End)]
    on_deny: OnDeny,

    /// Do not read stdin
    #[arg(long)]
    no_stdin: bool,

    /// Send a prompt that starts with `/` as it is, without looking for a skill
    #[arg(long)]
    no_skill: bool,

    /// Print every event as one line of JSON
    #[arg(long)]
    json: bool,

    /// Print nothing but errors on stderr
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Print the model's reasoning, the results of tools and the size of the context on stderr
    #[arg(short, long)]
    verbose: bool,
}

/// The number of times that the run is sent. A daemon that is about to stop can accept a connection and then drop it;
/// the next attempt reaches its successor.
const MAX_ATTEMPTS: u32 = 3;

pub(super) fn run(mut args: Args, home: &Home, environment: &Environment) -> Result<ExitCode, CliError> {
    let format = if args.json { Format::Json } else { Format::Text };
    let verbosity = match (args.quiet, args.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    let mut renderer = RunRenderer::new(format, verbosity, environment);
    let allowed = Allowed::parse(&args.allow)?;
    let mut start = start_command(&mut args, home, &mut renderer)?;
    start.allowed_commands = allowed.commands;
    let policy =
        Policy { auto_approve: args.auto_approve, allowed_tools: allowed.tools, on_deny: args.on_deny };
    let approver = Approver::new(policy, renderer.palette());
    let mut run = RunConnection::new(home, renderer, approver, args.session.is_none());
    let runtime = client::runtime()?;
    let mut attempts = 0;
    loop {
        let connected = client::ensure(home)?;
        for notice in connected.notices {
            run.renderer.note(Verbosity::Normal, &notice);
        }
        let result = runtime.block_on(run.drive(connected.stream, start.clone()));
        attempts += 1;
        match result {
            Ok(ending) => {
                if !start.checks.is_empty() {
                    note_unchecked(&ending, &mut run.renderer);
                }
                runtime.block_on(note_changes(home, &mut run.renderer));
                return run.exit_code(&ending);
            }
            Err(RunConnectionError::Daemon(_)) if !run.has_started() && attempts < MAX_ATTEMPTS => {}
            Err(RunConnectionError::Daemon(error) | RunConnectionError::NoReply(error)) => {
                run.renderer.end_line().ok();
                return Err(error);
            }
            Err(RunConnectionError::Stdout(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            Err(RunConnectionError::Stdout(error)) => {
                return Err(CliError::failed("cannot write to stdout").cause(error.to_string()));
            }
        }
    }
}

/// Says that the checks that the user asked for have not run, if that is so.
fn note_unchecked(ending: &Event, renderer: &mut RunRenderer) {
    if matches!(ending, Event::Completed(completed) if completed.checks_passed.is_none()) {
        renderer.note(Verbosity::Normal, "no check has run, because the model has changed nothing");
    }
}

/// Says how many files the run has changed. Says nothing if the daemon is gone, because the run is over.
async fn note_changes(home: &Home, renderer: &mut RunRenderer) {
    let Some(run_id) = renderer.run_with_changes().map(str::to_owned) else { return };
    let Ok(stream) = client::probe(home) else { return };
    let Ok(channel) = client::channel(stream).await else { return };
    let request = ListChangedRunsRequest { dir: String::new(), run_id };
    if let Ok(listed) = client::undo(channel).list_changed_runs(request).await
        && let Some(run) = listed.into_inner().runs.first()
    {
        renderer.note_changes(run.files);
    }
}

/// Builds the command that starts the run. Reads stdin if it is part of the prompt.
fn start_command(
    args: &mut Args,
    home: &Home,
    renderer: &mut RunRenderer,
) -> Result<StartRunCommand, CliError> {
    let stdin = if args.words.len() == 1 && args.words[0] == "-" {
        args.words.clear();
        StdinUse::Always
    } else if args.no_stdin {
        StdinUse::Never
    } else {
        StdinUse::Auto
    };
    let mut warn = |text: &str| renderer.note(Verbosity::Normal, text);
    let input = read_prompt(&args.words, stdin, !args.no_skill, &mut warn)?;
    let session = match &args.session {
        Some(id) => Some(id.parse::<SessionId>().map_err(|error| CliError::usage(error.to_string()))?),
        None if args.new => None,
        None => Sessions::new(home).active(),
    };
    Ok(StartRunCommand {
        prompt: input.prompt,
        session_id: session.map(|id| id.to_string()).unwrap_or_default(),
        agent_name: args.agent.clone().unwrap_or_default(),
        working_dir: working_dir::chosen_or_current(args.working_dir.take())?,
        skill: input.skill,
        workers: args.workers,
        bare: args.bare,
        opening: true,
        commands: true,
        allowed_commands: Vec::new(),
        checks: std::mem::take(&mut args.check),
    })
}
