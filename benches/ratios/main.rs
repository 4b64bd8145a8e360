//! Measures kontekst as ratios to curl and to a minimal client.
//!
//! `cargo bench --bench ratios [-- --rounds N --only WORD --check]` needs the release binary, which
//! cargo builds, and curl. All clients talk to one scripted model server and run alternately, so that a busy machine
//! slows all of them. The figures are medians of whole processes. Compare the ratios and not the milliseconds.
//!
//! `--memory` measures something else: the memory of the daemon a minute after heavy loads, next to that of a fresh one.
//!
//! `--counts` measures no times: it compares page faults, system calls and the like with `baseline.toml`.

mod cases;
mod clock;
mod counts;
mod fixture;
mod home;
mod http;
mod minimal_client;
mod process;
mod script;
mod server;
mod table;

use std::{env, io, io::Write, path::PathBuf, process::ExitCode};

use clap::Parser;

/// An error that ends a case or the benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures kontekst and curl.
#[derive(Parser)]
struct Args {
    /// Runs of each tool in each case
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only the cases whose name contains this
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Only the memory of the daemon after heavy loads, which takes eight minutes
    #[arg(long)]
    memory: bool,
    /// Only the counts of page faults, system calls, instructions and bytes, next to the committed ones
    #[arg(long, conflicts_with = "memory")]
    counts: bool,
    /// Make these counts the committed ones
    #[arg(long, requires = "counts")]
    renew: bool,
    /// Exit with 1 when a goal is missed
    #[arg(long)]
    check: bool,
    /// Measure this binary instead of the one that cargo built
    #[arg(long, value_name = "PATH", default_value = env!("CARGO_BIN_EXE_kontekst"))]
    kontekst: PathBuf,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            writeln!(io::stderr(), "ratios: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

/// Runs the benchmark, or one of the processes that it needs: the model server, the minimal client, or the launcher.
fn run() -> Result<ExitCode, Failure> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--serve", window] => server::serve(window)?,
        ["--minimal-client", address, body] => minimal_client::ask(address, body)?,
        ["--launch", program, ..] => writeln!(io::stdout(), "{}", process::launch(program, &words[2..])?)?,
        _ => return measure(&Args::parse()),
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args) -> Result<ExitCode, Failure> {
    let mut missed = 0;
    let options = fixture::Options { kontekst: args.kontekst.clone(), rounds: args.rounds };
    if args.counts {
        let above = counts::run(&options, args.renew)?;
        return Ok(if args.check && above > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    writeln!(io::stdout(), "{:<34} kontekst / the other", "")?;
    for case in if args.memory { cases::memory::ALL } else { cases::ALL } {
        if args.only.as_ref().is_some_and(|word| !case.name.contains(word.as_str())) {
            continue;
        }
        let rows = (case.run)(&options).unwrap_or_else(|error| vec![table::Row::failed(case.name, &error)]);
        for row in rows {
            missed += u32::from(!row.passed());
            row.print()?;
        }
    }
    writeln!(io::stdout(), "{missed} missed")?;
    Ok(if args.check && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
