//! Measures `search_files` next to `rg`, on a tree of 20,000 files that is the same each time.
//!
//!     cargo bench --bench search [-- ROUNDS]
//!
//! The rows take turns, so that a busy machine is busy for both. The minimum of many is what a search costs when nothing else
//! runs. The time of `rg` is that of its process. The goal is 1.5 times the time of `rg`.

#![expect(clippy::print_stdout, reason = "it is what a bench is for")]

mod tree;

use std::{
    error::Error,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use kontekst_core::{Cancel, OwnListeners};
use kontekst_store::config::{Home, ToolsConfig};
use kontekst_tools::{Tool, WorkDir, builtin};
use serde_json::json;

/// The number of measurements of each row, if the command line does not say.
const ROUNDS: usize = 30;

/// Patterns with what they stand for.
const PATTERNS: [(&str, &str); 4] = [
    ("a text that no file has", "qwertyuiop"),
    ("a rare word", tree::RARE_WORD),
    ("a regular expression", r"fn \w+_handler\("),
    ("a word in one line of fifty", tree::COMMON_WORD),
];

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let dir = tempfile::tempdir()?;
    // Each directory is compared with the data directory, which no tool reads.
    let data = tempfile::tempdir()?;
    let home = Home::find(Some(data.path().to_owned())).map_err(|error| error.to_string())?;
    let (files, bytes) = tree::write(dir.path())?;
    println!("{files} files, {} MiB, the minimum of {rounds} rounds", bytes >> 20);
    println!("{:28} {:>12} {:>12} {:>7}", "", "search_files", "rg", "ratio");
    let tools = builtin::all(&ToolsConfig::default(), &OwnListeners::default(), None);
    let tool = tools.iter().find(|tool| tool.def().name == "search_files").ok_or("no search_files")?;
    for (name, pattern) in PATTERNS {
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(search_files(tool, pattern, dir.path(), &home)?);
            others.push(rg(pattern, dir.path())?);
        }
        let minimum = |times: Vec<Duration>| times.into_iter().min().unwrap_or_default().as_secs_f64();
        let (ours, other) = (minimum(ours), minimum(others));
        println!("{name:28} {:>9.1} ms {:>9.1} ms {:>7.2}", ours * 1e3, other * 1e3, ours / other);
    }
    Ok(())
}

fn search_files(
    tool: &Arc<dyn Tool>,
    pattern: &str,
    dir: &Path,
    home: &Home,
) -> Result<Duration, Box<dyn Error>> {
    let work_dir = WorkDir::new(dir, home)?;
    let arguments = json!({"pattern": pattern});
    let start = Instant::now();
    let proposal = tool.propose(&arguments, &work_dir);
    let outcome = tool.execute(&arguments, &work_dir, &proposal, &Cancel::new());
    let time = start.elapsed();
    if outcome.is_error() { Err(outcome.text().into()) } else { Ok(time) }
}

fn rg(pattern: &str, dir: &Path) -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--line-number", "--smart-case", "--no-heading", pattern, "."]);
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("rg: {error}"))?;
    // 1 means that nothing was found.
    if status.code().is_none_or(|code| code > 1) {
        Err(format!("rg: {status}").into())
    } else {
        Ok(start.elapsed())
    }
}
