//! Measures how many small tasks a model finishes, with the rails and without them.
//!
//!     cargo bench --bench tasks -- --model MODEL.gguf [--server llama-server] [--harness kontekst,bare] [--tasks a,b]
//!
//! Forty tasks over small file trees (`suite/`), judged by files, exit statuses and facts; with `--suite new` 44 that are
//! worded as people write, and with `--kind repair` five projects with a test that fails and a check. Prints one line for each
//! run and then a table. `--check` is for a gate: it fails if kontekst broke its contract, or did fewer tasks than asked.

mod arguments;
mod harness;
mod process;
mod record;
mod server;
mod suite;
mod table;

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use arguments::Args;
use clap::Parser as _;
use harness::{Harness, Run};
use record::Record;
use server::ModelServer;
use suite::{Task, Tree, judge::Outcome};

/// An error that ends the bench.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match bench(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            writeln!(io::stderr(), "tasks: {error}").ok();
            ExitCode::from(2)
        }
    }
}

fn bench(args: &Args) -> Result<ExitCode, Failure> {
    let tasks = args.chosen_tasks()?;
    if args.list {
        for task in &tasks {
            writeln!(io::stdout(), "{:<16} {:<10} {}", task.name, task.kind.name(), task.prompt)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let server = ModelServer::start(args)?;
    let mut records = Vec::new();
    for harness in args.harnesses()? {
        let mut of_harness = Vec::new();
        for (run, task) in (1..=args.runs).flat_map(|run| tasks.iter().map(move |task| (run, task))) {
            let record = measure(args, &server, harness, task, run)?;
            writeln!(io::stdout(), "{}", record.line())?;
            of_harness.push(record);
        }
        records.push((harness, of_harness));
    }
    let title = args.title(&server);
    table::print(&title, &records)?;
    if let Some(path) = &args.json {
        let all: Vec<&Record> = records.iter().flat_map(|(_, records)| records).collect();
        fs::write(path, format!("{:#}\n", serde_json::json!({"title": title, "runs": all})))?;
    }
    match args.check {
        Some(floor) => check(floor, records.iter().flat_map(|(_, records)| records)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs one task once and judges it.
fn measure(
    args: &Args,
    server: &ModelServer,
    harness: Harness,
    task: &Task,
    number: u32,
) -> Result<Record, Failure> {
    let scratch = tempfile::tempdir()?;
    let kept = args.keep.as_ref().map(|dir| dir.join(harness.name()).join(format!("{}-{number}", task.name)));
    let dir = kept.as_deref().unwrap_or(scratch.path());
    if dir.exists() && kept.is_some() {
        fs::remove_dir_all(dir)?;
    }
    let run = Run { args, server, task, work_dir: dir.join("work"), dir: dir.to_owned() };
    fs::create_dir_all(&run.work_dir)?;
    task.files.write(&run.work_dir)?;
    let ended = harness::run(&run, harness)?;
    let tree = Tree::read(&run.work_dir)?;
    let outcome = Outcome { exit: ended.exit.unwrap_or(-1), answer: ended.answer.clone(), tree };
    let record = Record::new(harness, task, number, &ended, &task.judge(&outcome));
    keep_verdict(dir, task, &record)?;
    Ok(record)
}

/// Writes what a reader of the transcript wants to know first.
fn keep_verdict(dir: &Path, task: &Task, record: &Record) -> Result<(), Failure> {
    let text = format!("{}\nprompt: {}\n{}\n", record.line(), task.prompt, record.wrong.join("\n"));
    Ok(fs::write(dir.join("verdict.txt"), text)?)
}

/// Returns failure if kontekst broke its contract, or if fewer than `floor` tasks were done.
fn check<'a>(floor: usize, records: impl Iterator<Item = &'a Record>) -> Result<ExitCode, Failure> {
    let (mut done, mut faults) = (0, 0);
    for record in records {
        done += usize::from(record.done);
        if let Some(fault) = record.contract_fault() {
            faults += 1;
            writeln!(io::stdout(), "FAULT {}: {fault}", record.task)?;
        }
    }
    writeln!(io::stdout(), "{done} done, at least {floor} expected; {faults} faults")?;
    Ok(if faults == 0 && done >= floor { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns a path as text for a command line or a configuration file.
fn text_of(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| format!("{} is not valid UTF-8", PathBuf::from(path).display()).into())
}
