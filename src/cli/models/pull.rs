//! `kontekst models pull`.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use super::{progress::DownloadProgress, signals::Signals, sources::ModelSources, units, use_model};
use crate::{
    cli::{error::CliError, on_stdout, printable::printable},
    config::{AgentConfig, Config, Home, agents},
    core::Name,
    models::{
        gguf::Header,
        pull::{self, Outcome, PullError, Source},
    },
};

/// Fetch a model
///
/// From a repository of Hugging Face, or from any address. A repository alone means its Q4_K_M file, or the
/// only one it has. The file gets its name when all of it is here and its checksum is right; what breaks
/// off is kept as NAME.part, and the same command goes on from there.
///
/// The name to use is printed on stdout, the progress on stderr.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kontekst models pull Qwen/Qwen3-8B-GGUF
  kontekst models pull Qwen/Qwen3-8B-GGUF:Q8_0
  kontekst models pull hf:unsloth/gpt-oss-20b-GGUF:gpt-oss-20b-Q4_K_M.gguf
  kontekst models pull https://models.example.org/small.gguf --sha256 29fc…
  kontekst models pull --use Qwen/Qwen3-4B-GGUF

Environment:
  HF_TOKEN      for repositories that need a login; shown to the hub only
  KONTEKST_HUB  the hub, instead of https://huggingface.co (HF_ENDPOINT will do)")]
pub struct Args {
    /// ORG/NAME, ORG/NAME:QUANTISATION, ORG/NAME:FILE.gguf, or an address
    #[arg(value_name = "SOURCE")]
    source: String,
    /// The directory, instead of model_dir
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    into: Option<PathBuf>,
    /// The checksum that the file must have
    #[arg(long, value_name = "HEX", value_parser = checksum)]
    sha256: Option<String>,
    /// Make it the one that answers: the model of the agent `default`, or of the one named
    #[arg(long = "use", value_name = "AGENT", num_args = 0..=1, default_missing_value = agents::DEFAULT, require_equals = true, conflicts_with = "into")]
    agent: Option<Name>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

fn checksum(text: &str) -> Result<String, String> {
    let is_one = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one { Ok(text.to_ascii_lowercase()) } else { Err("a SHA-256 is 64 hexadecimal digits".to_owned()) }
}

/// A line for the person who waits.
pub(super) fn print_status(text: &str) {
    writeln!(std::io::stderr(), "{}", printable(text)).ok();
}

pub fn run(args: &Args, home: &Home, config: &Config, sources: &ModelSources) -> Result<ExitCode, CliError> {
    let net = sources.net()?;
    // Before gigabytes are fetched for one that is not there.
    let agent = args.agent.as_ref().map(|name| AgentConfig::load(home, name)).transpose()?;
    let dir = match &args.into {
        Some(dir) => std::path::absolute(dir).map_err(|error| {
            CliError::usage(format!("`{}` is not a directory", dir.display())).cause(error.to_string())
        })?,
        None => config.model_dir.clone(),
    };
    let signals = Signals::listen()?;
    let cancel = &signals.cancel;
    let failed = |error: PullError| {
        let cancelled = matches!(error, PullError::Cancelled { .. });
        let shown = CliError::from(error);
        match signals.exit_status().filter(|_| cancelled) {
            Some(kind) => CliError { status: kind, ..shown },
            None => shown,
        }
    };
    let source = Source::parse(&args.source, &net.hub).map_err(failed)?;
    let mut files = pull::files(&source, &net, cancel).map_err(failed)?;
    if let Some(sha256) = &args.sha256 {
        let [file] = files.as_mut_slice() else {
            return Err(CliError::usage(format!(
                "this model has {} files and --sha256 is for one",
                files.len()
            )));
        };
        file.sha256 = Some(sha256.clone());
    }
    let mut progress = DownloadProgress::new(args.quiet);
    for (at, file) in files.iter().enumerate() {
        if files.len() > 1 && !args.quiet {
            print_status(&format!("file {} of {}", at + 1, files.len()));
        }
        let fetched = pull::fetch(file, &dir, &net, cancel, &mut |step| progress.show(&step));
        progress.end_line();
        let path = dir.join(&file.name);
        match fetched.map_err(failed)? {
            Outcome::AlreadyPresent => {
                print_status(&format!("{} is there already, and the same file", path.display()));
            }
            Outcome::Downloaded { bytes, sha256, verified } => {
                let checked = match verified {
                    true => "its checksum is right".to_owned(),
                    false => format!("nobody told its checksum; it is {sha256}"),
                };
                print_status(&format!("{}: {}, {checked}", path.display(), units::bytes(bytes)));
                if let Err(error) = Header::open(&path) {
                    print_status(&format!("note: it may not be a model that can be loaded: {error}"));
                }
            }
        }
    }
    let name = &files[0].name;
    if let Some(agent) = agent {
        use_model::set(home, &agent.id, name)?;
    } else if args.into.is_none() {
        print_status(&format!("`kontekst models use {name}` makes it the one that answers"));
    }
    on_stdout(|out, _| Ok(writeln!(out, "{name}")?))
}
