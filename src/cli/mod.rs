//! The command line.
//!
//! What was typed becomes a struct (clap), the struct becomes one call, and every error becomes a
//! [`CliError`] with a hint and an exit code.

pub mod agents;
mod approval_prompt;
mod approvals;
mod daemon;
mod daemon_errors;
pub mod error;
mod event_json;
mod models;
mod policy;
pub mod printable;
mod prompt;
mod render;
mod rpc;
mod run;
pub mod sessions;
pub mod skills;
mod status;
mod subagent_names;
pub mod table;
mod web;

use std::{
    ffi::OsString,
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{config::Home, core::Environment};
use error::CliError;

/// Asks a local model, and lets it use tools with your approval.
#[derive(Debug, Parser)]
#[command(
    name = "kontekst",
    version,
    propagate_version = true,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  kontekst run \"what does this project do?\"
  git diff | kontekst run \"review this change\"
  kontekst run --allow read_file,list_files \"summarise the docs folder\"
  kontekst models pull Qwen/Qwen3-8B-GGUF
  kontekst status

The first run starts a daemon that keeps the model warm; `kontekst daemon stop` ends it.
Everything is kept in ~/.kontekst (or $KONTEKST_HOME).",
    after_long_help = "Exit status:
  0    done
  1    the run failed
  2    usage or configuration
  3    a tool needs approval and there is no terminal to ask on
  4    a tool was denied
  5    a limit was reached: max_turns, max_tokens, the window
  6    the daemon or the model server cannot be reached
  130  interrupted (143: terminated)

Environment:
  KONTEKST_HOME          the data directory, instead of ~/.kontekst
  KONTEKST_LLAMA_SERVER  the llama-server binary, if it is not on PATH
  KONTEKST_LOG           what the daemon logs, for example debug
  HF_TOKEN, KONTEKST_HUB for `kontekst models pull`: the token of Hugging Face, and another hub
  NO_COLOR               no colours

Files:
  ~/.kontekst/config.toml         endpoint, model_dir, context_size, tools
  ~/.kontekst/agents/NAME/        config.toml (model, sampling) and agent.md (system prompt)
  ~/.kontekst/skills/             prompt templates: NAME.md or NAME/SKILL.md
  ~/.kontekst/sessions/ID.jsonl   conversations, one message a line
  ~/.kontekst/teams/ID.jsonl      what the workers of a session did, one event a line"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Status(status::Args),
    Agents(agents::Args),
    Models(models::Args),
    Skills(skills::Args),
    Sessions(sessions::Args),
    Approvals(approvals::Args),
    Web(web::Args),
    Daemon(daemon::Args),
    Rpc(rpc::Args),
    /// Becomes a model server that dies with the daemon.
    #[command(hide = true)]
    ExecChild {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
}

/// The command line's definition: `man/` and `completions/` are made from it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The program.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are a success; a closed pipe is not a failure.
            error.print().ok();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    // The environment is read here and nowhere else: everything below gets it passed.
    match dispatch(cli.command, &Environment::read(), ureq::Proxy::try_from_env()) {
        Ok(code) => code,
        Err(error) => {
            let mut stderr = std::io::stderr().lock();
            // There is nobody left to tell when stderr is closed.
            error.write(&mut stderr).ok();
            error.exit_code()
        }
    }
}

fn dispatch(
    command: Command,
    environment: &Environment,
    proxy: Option<ureq::Proxy>,
) -> Result<ExitCode, CliError> {
    if let Command::ExecChild { command } = command {
        let error = crate::provider::supervisor::exec::exec_child(command);
        return Err(CliError::failed("cannot become the model server").cause(error.to_string()));
    }
    let home = Home::find(environment.get("KONTEKST_HOME").map(PathBuf::from))?;
    match command {
        Command::Run(args) => run::run(args, &home, environment),
        Command::Status(args) => status::run(&args, &home),
        Command::Approvals(args) => approvals::run(args, &home),
        Command::Web(args) => web::run(&args, &home, environment),
        Command::Daemon(args) => daemon::run(&args, &home, environment),
        Command::Rpc(args) => rpc::run(&args, &home),
        Command::Models(args) => models::run(args, &home, environment, proxy),
        Command::Agents(args) => on_stdout(|out, terminal| agents::run(args, &home, out, terminal)),
        Command::Skills(args) => on_stdout(|out, terminal| skills::run(args, &home, out, terminal)),
        Command::Sessions(args) => on_stdout(|out, terminal| sessions::run(args, &home, out, terminal)),
        Command::ExecChild { .. } => unreachable!("handled above"),
    }
}

/// Runs a command that prints a whole page. A reader that has seen enough is no error.
fn on_stdout(
    page: impl FnOnce(&mut dyn std::io::Write, bool) -> Result<(), CliError>,
) -> Result<ExitCode, CliError> {
    let terminal = std::io::stdout().is_terminal();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    page(&mut out, terminal)?;
    match out.flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::failed("cannot write to stdout").cause(error.to_string()))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
