//! Runs a task with `kontekst run` in a data directory of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use toml_edit::{DocumentMut, Item, TableLike};

use crate::{Failure, arguments::Args, process, server::ModelServer, suite::Task, text_of};

/// One way to run a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harness {
    Kontekst,
    /// `kontekst run --bare`: no rails.
    Bare,
}

impl Harness {
    pub(crate) const ALL: &[Self] = &[Self::Kontekst, Self::Bare];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kontekst => "kontekst",
            Self::Bare => "bare",
        }
    }
}

/// One task in a directory of its own.
pub(crate) struct Run<'a> {
    pub(crate) args: &'a Args,
    pub(crate) server: &'a ModelServer,
    pub(crate) task: &'a Task,
    /// The files of the task.
    pub(crate) work_dir: PathBuf,
    /// Everything else: the data directory, and the transcript.
    pub(crate) dir: PathBuf,
}

/// The end of a run, and the tokens that it used.
#[derive(Default)]
pub(crate) struct RunEnd {
    pub(crate) exit: Option<i32>,
    pub(crate) timed_out: bool,
    pub(crate) answer: String,
    /// The harness itself failed, for example by a panic.
    pub(crate) crash: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) seconds: f64,
}

/// The calls of the model server, and their tokens.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Usage {
    pub(crate) calls: u64,
    pub(crate) prompt_tokens: u64,
    /// The part of `prompt_tokens` that the server had read before.
    pub(crate) cached_tokens: u64,
    pub(crate) completion_tokens: u64,
}

/// The time that the daemon may take to stop.
const STOP_TIME: Duration = Duration::from_secs(20);

pub(crate) fn run(run: &Run, harness: Harness) -> Result<RunEnd, Failure> {
    let home = DataDir::new(run)?;
    let mut command = home.command();
    command.args(["run", "--new", "--json"]);
    match run.task.check {
        "" => command.arg("--auto-approve"),
        check => command.args(["--allow", "edit_file,write_file,run_command", "--check", check]),
    };
    if harness == Harness::Bare {
        command.arg("--bare");
    }
    command.arg(run.task.prompt);
    let ended = process::run(command, run.task.stdin.as_deref(), &run.dir, run.args.timeout())?;
    home.stop()?;
    let events: Vec<Value> =
        ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(RunEnd {
        exit: ended.exit,
        timed_out: ended.timed_out,
        answer: answer(&events),
        crash: home.panic(),
        usage: usage(&events),
        seconds: ended.seconds,
    })
}

/// Returns what `kontekst run` prints without `--json`.
fn answer(events: &[Value]) -> String {
    let tokens = events.iter().filter(|event| event["type"] == "token");
    tokens.filter_map(|event| event["text"].as_str()).collect()
}

/// Adds up what the events say. A request that was repeated counts once.
fn usage(events: &[Value]) -> Usage {
    let mut usage = Usage::default();
    for event in events.iter().filter(|event| event["type"] == "turn_completed") {
        let count = |name: &str| event["context"][name].as_u64().unwrap_or(0);
        usage.calls += 1;
        usage.prompt_tokens += count("prompt_tokens");
        usage.cached_tokens += count("cached_tokens");
        usage.completion_tokens += count("answer_tokens");
    }
    usage
}

/// A new data directory with the default agent.
struct DataDir {
    path: PathBuf,
    kontekst: PathBuf,
    work_dir: PathBuf,
}

impl DataDir {
    fn new(run: &Run) -> Result<Self, Failure> {
        let path = run.dir.join("home");
        let home = Self { path, kontekst: run.args.kontekst.clone(), work_dir: run.work_dir.clone() };
        let created = home.command().args(["agents", "list"]).stdout(Stdio::null()).status()?;
        if !created.success() {
            return Err("the data directory cannot be created".into());
        }
        fs::write(home.path.join("config.toml"), config(run.args, run.server, run.task.config)?)?;
        let agent = home.path.join("agents/default/config.toml");
        fs::write(&agent, agent_config(&fs::read_to_string(&agent)?, run.args, run.server)?)?;
        Ok(home)
    }

    fn command(&self) -> Command {
        let mut command = process::without_terminal(&self.kontekst, &self.path);
        command.env("KONTEKST_HOME", &self.path).current_dir(&self.work_dir).stdin(Stdio::null());
        command
    }

    /// Stops the daemon, so that the next run starts without one.
    fn stop(&self) -> Result<(), Failure> {
        let mut command = self.command();
        command.args(["daemon", "stop", "--force"]);
        let dir = self.path.join("stop");
        fs::create_dir_all(&dir)?;
        process::run(command, None, &dir, STOP_TIME)?;
        Ok(())
    }

    /// Returns the line of the daemon's log that reports a panic.
    fn panic(&self) -> Option<String> {
        let log = fs::read_to_string(self.path.join("daemon.log")).ok()?;
        log.lines().find(|line| line.contains("panicked")).map(str::to_owned)
    }
}

/// Returns the text of `config.toml`. Keys that are not needed are left out, so that the defaults are measured.
fn config(args: &Args, server: &ModelServer, of_task: &str) -> Result<String, Failure> {
    let model_dir =
        |model: &Path| Ok::<_, Failure>(text_of(model.parent().unwrap_or(Path::new("/")))?.to_owned());
    let place = match (&server.endpoint, &args.model) {
        (Some(endpoint), _) => format!("provider = \"endpoint\"\nendpoint = \"{endpoint}\"\n"),
        (None, Some(model)) => format!("provider = \"builtin\"\nmodel_dir = \"{}\"\n", model_dir(model)?),
        (None, None) => String::new(),
    };
    let base: DocumentMut = format!("bind = \"off\"\n{place}{of_task}").parse()?;
    with_lines(base, &args.config)
}

/// Returns the text of the agent's `config.toml`: the one that a user gets, with the model and the temperature set.
fn agent_config(default: &str, args: &Args, server: &ModelServer) -> Result<String, Failure> {
    let mut base: DocumentMut = default.parse()?;
    // The server chooses, because it has only one.
    let file_name = args.model.as_deref().and_then(Path::file_name).filter(|_| server.endpoint.is_none());
    base["model"] =
        toml_edit::value(file_name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()));
    base["sampling"]["temperature"] = toml_edit::value(args.temperature);
    with_lines(base, &args.agent_config)
}

/// Returns `base` with the keys of `lines` set.
fn with_lines(mut base: DocumentMut, lines: &[String]) -> Result<String, Failure> {
    for line in lines {
        let extra: DocumentMut = line.parse().map_err(|error| format!("{line}: {error}"))?;
        merge(base.as_table_mut(), extra.as_table());
    }
    Ok(base.to_string())
}

fn merge(into: &mut dyn TableLike, from: &dyn TableLike) {
    for (key, item) in from.iter() {
        match (into.get_mut(key).and_then(Item::as_table_like_mut), item.as_table_like()) {
            (Some(into), Some(from)) => merge(into, from),
            _ => {
                into.insert(key, item.clone());
            }
        }
    }
}
