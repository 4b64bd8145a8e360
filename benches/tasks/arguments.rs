//! The command line of the bench.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Parser;

use crate::{
    Failure,
    harness::Harness,
    server::ModelServer,
    suite::{self, Task},
};

/// Measures how many small tasks a model finishes.
#[derive(Parser)]
pub(crate) struct Args {
    /// A GGUF file
    #[arg(long, value_name = "FILE", required_unless_present_any = ["endpoint", "list"])]
    pub(crate) model: Option<PathBuf>,
    /// llama.cpp's server, which is started with the model [default: $KONTEKST_LLAMA_SERVER, or else the built-in engine]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// A model server that is running already
    #[arg(long, value_name = "URL", conflicts_with_all = ["model", "server"])]
    pub(crate) endpoint: Option<String>,
    /// The context window of the server that is started, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 8192)]
    pub(crate) window: u32,
    /// Threads of the server that is started
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) threads: u32,
    /// How the tasks are run: kontekst, bare (which is `kontekst run --bare`), or both
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "kontekst")]
    harness: Vec<String>,
    /// The forty tasks, the 44 that are worded as people write, or both [default: old, or with --tasks or --kind every task]
    #[arg(long, value_enum)]
    suite: Option<Suite>,
    /// Only these tasks
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tasks: Vec<String>,
    /// Only tasks of these kinds
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kind: Vec<String>,
    /// Print the tasks and run none
    #[arg(long)]
    pub(crate) list: bool,
    /// Runs of each task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// The sampling temperature
    #[arg(long, value_name = "T", default_value_t = 0.1)]
    pub(crate) temperature: f64,
    /// A line for the agent's config.toml, for example 'tool_role = "steps"'; may be given several times
    #[arg(long, value_name = "LINE")]
    pub(crate) agent_config: Vec<String>,
    /// A line for config.toml; may be given several times
    #[arg(long, value_name = "LINE")]
    pub(crate) config: Vec<String>,
    /// The longest time of one run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Measure this binary instead of the one that cargo built
    #[arg(long, value_name = "PATH", default_value = env!("CARGO_BIN_EXE_kontekst"))]
    pub(crate) kontekst: PathBuf,
    /// Write everything that was measured to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the directory of each run, with its transcript, below this one
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Exit with 1 when kontekst broke its contract or fewer tasks than this were done
    #[arg(long, value_name = "DONE")]
    pub(crate) check: Option<usize>,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// A set of tasks.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Suite {
    Old,
    New,
    All,
}

impl Args {
    /// Returns the llama-server to start, if there is one.
    pub(crate) fn server(&self) -> Option<PathBuf> {
        self.server.clone().or_else(|| std::env::var_os("KONTEKST_LLAMA_SERVER").map(PathBuf::from))
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Returns the tasks that the command line selects.
    ///
    /// # Errors
    ///
    /// Fails if a name is unknown.
    pub(crate) fn chosen_tasks(&self) -> Result<Vec<Task>, Failure> {
        let chosen = match self.suite {
            None if self.tasks.is_empty() && self.kind.is_empty() => suite::all(),
            Some(Suite::Old) => suite::all(),
            Some(Suite::New) => suite::worded(),
            Some(Suite::All) => [suite::all(), suite::worded()].concat(),
            None => [suite::all(), suite::repairs(), suite::worded()].concat(),
        };
        let unknown_task = self.tasks.iter().find(|name| !chosen.iter().any(|task| task.name == **name));
        let unknown_kind =
            self.kind.iter().find(|kind| !chosen.iter().any(|task| task.kind.name() == **kind));
        if let Some(name) = unknown_task.or(unknown_kind) {
            return Err(format!("there is no task or kind {name} in this suite; --list prints them").into());
        }
        let is_chosen = |task: &Task| {
            (self.tasks.is_empty() || self.tasks.iter().any(|name| name == task.name))
                && (self.kind.is_empty() || self.kind.contains(&task.kind.name()))
        };
        Ok(chosen.into_iter().filter(is_chosen).collect())
    }

    /// Returns the harnesses that the command line names.
    ///
    /// # Errors
    ///
    /// Fails if a name is unknown.
    pub(crate) fn harnesses(&self) -> Result<Vec<Harness>, Failure> {
        let named = |name: &String| {
            let found = Harness::ALL.iter().copied().find(|harness| harness.name() == name);
            found.ok_or_else(|| format!("there is no harness {name}").into())
        };
        self.harness.iter().map(named).collect()
    }

    /// Returns one line that says what was measured with what.
    pub(crate) fn title(&self, server: &ModelServer) -> String {
        let model = self
            .model
            .as_deref()
            .and_then(Path::file_stem)
            .map_or("the endpoint's model".into(), |stem| stem.to_string_lossy());
        let settings = [self.agent_config.as_slice(), &self.config].concat().join(", ");
        format!("{model}, {}, temperature {}, {settings}", server.description(), self.temperature)
            .trim_end_matches(", ")
            .to_owned()
    }
}
