//! `kontekst models use`.

use std::{io, process::ExitCode};

use super::{builtin_model, pull::print_status, sources::ModelSources};
use crate::{
    cli::error::CliError,
    config::{AgentConfig, Config, Home, ProviderKind, agents, file::read_text, write_atomic},
    core::Name,
    models::{ModelOrigin, catalog, selection},
};

/// Make a model the one that an agent uses
///
/// Sets `model` in the agent's config.toml and leaves the rest as it is, comments too. A model that
/// another program fetched gets a link in model_dir. It counts from the next run on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kontekst models use Qwen3-8B-Q4_K_M
  kontekst models use qwen3:8b --agent coder     # from Ollama's store
  kontekst models use gpt-oss:20b --anyway       # a name that your endpoint knows")]
pub struct Args {
    /// A name that `kontekst models` lists (without .gguf will do)
    name: String,
    /// The agent
    #[arg(short, long, value_name = "AGENT", default_value = agents::DEFAULT)]
    agent: Name,
    /// Also if there is no such file here: the endpoint knows the name
    #[arg(long)]
    anyway: bool,
}

pub fn run(args: &Args, home: &Home, config: &Config, sources: &ModelSources) -> Result<ExitCode, CliError> {
    let agent = AgentConfig::load(home, &args.agent)?;
    let at_endpoint = agent.endpoint.is_some() || config.provider == Some(ProviderKind::Endpoint);
    let found =
        catalog::find(&sources.places, &args.name).filter(|_| !builtin_model::is_builtin_name(&args.name));
    let name = match found {
        Some(model) if model.missing > 0 => {
            return Err(CliError::usage(format!(
                "{} of the files of {} are missing",
                model.missing, model.name
            ))
            .hint("fetch them with `kontekst models pull`"));
        }
        Some(model) => {
            let name = selection::link(&model, &config.model_dir)?;
            if model.origin != ModelOrigin::ModelDir {
                let path = config.model_dir.join(&name);
                print_status(&format!("{} links to the model of {}", path.display(), model.origin.as_str()));
            }
            name
        }
        None if at_endpoint || args.anyway || builtin_model::is_builtin_name(&args.name) => {
            args.name.trim().to_owned()
        }
        None => {
            return Err(CliError::usage(format!("there is no model `{}` on this machine", args.name))
                .hint("`kontekst models` lists them, `kontekst models pull ORG/NAME` fetches one")
                .hint("--anyway takes a name that your endpoint knows"));
        }
    };
    set(home, &agent.id, &name)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes `model` the one that an agent uses.
pub(super) fn set(home: &Home, agent: &Name, model: &str) -> Result<(), CliError> {
    let path = home.agents().join(agent.as_str()).join("config.toml");
    let before = match read_text(&path, 1 << 20) {
        Ok(text) => text,
        // An agent may have a prompt only.
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let after = selection::with_model(&before, model).map_err(|error| {
        CliError::usage(format!("`{}` cannot be understood", path.display())).cause(error.to_string())
    })?;
    if after != before {
        write_atomic(&path, after.as_bytes())?;
    }
    print_status(&format!("agent {agent} uses {model}"));
    Ok(())
}
