//! `kontekst models`: what is on disk, more of it, and how good it is.

mod builtin_model;
mod check;
mod errors;
mod list;
mod measure;
mod progress;
mod pull;
mod report;
mod show;
mod signals;
mod sources;
mod units;
mod use_model;

use std::process::ExitCode;

use clap::Subcommand;

use super::{error::CliError, on_stdout, printable::PrintableWriter};
use crate::{
    config::{Config, Home, agents},
    core::Environment,
};
use sources::ModelSources;

/// List, fetch, choose and measure models
///
/// A model is a GGUF file in `model_dir`, ~/models unless config.toml says otherwise. What Hugging Face,
/// Ollama, LM Studio and llama.cpp have fetched is found too, and `models use` links to it, so that nothing
/// is fetched twice.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  kontekst models
  kontekst models pull Qwen/Qwen3-8B-GGUF
  kontekst models show Qwen3-8B-Q4_K_M
  kontekst models use Qwen3-8B-Q4_K_M
  kontekst models check")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Show(show::Args),
    Pull(pull::Args),
    Use(use_model::Args),
    Check(check::Args),
}

pub(super) fn run(
    args: Args,
    home: &Home,
    environment: &Environment,
    proxy: Option<ureq::Proxy>,
) -> Result<ExitCode, CliError> {
    home.create()?;
    agents::create_default(home)?;
    let config = Config::load(home)?;
    let sources = ModelSources::new(&config, environment, proxy);
    match args.command.unwrap_or(Command::List(list::Args { json: args.json })) {
        Command::List(list) => on_stdout(|out, terminal| {
            list::run(&list, home, &config, &sources, &mut PrintableWriter::new(out, terminal))
        }),
        Command::Show(show) => on_stdout(|out, terminal| {
            show::run(&show, home, &config, &sources, &mut PrintableWriter::new(out, terminal))
        }),
        Command::Pull(pull) => pull::run(&pull, home, &config, &sources),
        Command::Use(choice) => use_model::run(&choice, home, &config, &sources),
        Command::Check(check) => check::run(&check, home, &config, &sources, environment),
    }
}
