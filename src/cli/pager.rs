//! Shows long output on a terminal one screen at a time, with the pager that git would use.

use std::{
    io::{BufWriter, Write},
    process::{Child, Command, ExitCode, Stdio},
};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    error::{CliError, ExitStatus},
    output::{Screen, to_stdout},
};
use crate::core::Environment;

/// The pager of somebody who has not chosen one.
const DEFAULT: &str = "less";

/// The settings of `less` that let it end at once if everything fits on one screen, and leave the text on the screen.
const LESS: &str = "FRX";

/// Runs a command that prints to stdout: through `$PAGER` on a terminal, and directly in a pipe. Without a pager that can
/// be started, it prints directly, too.
pub(super) fn to_pager(
    environment: &Environment,
    print: impl FnOnce(&mut dyn Write, Screen) -> Result<(), CliError>,
) -> Result<ExitCode, CliError> {
    let screen = Screen::of_stdout();
    let Some(mut pager) = start(screen, environment) else {
        return to_stdout(|out, _| print(out, screen));
    };
    // Ctrl-C is for the pager, which would otherwise be left alone with the terminal.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CliError::failed("cannot wait for signals").cause(error.to_string()))?;
    let entered = runtime.enter();
    let interrupts = signal(SignalKind::interrupt());
    let mut out = BufWriter::new(pager.stdin.take().expect("its stdin is a pipe"));
    let printed = print(&mut out, screen).and_then(|()| Ok(out.flush()?));
    drop(out);
    pager.wait().map_err(|error| CliError::failed("cannot wait for the pager").cause(error.to_string()))?;
    drop((interrupts, entered));
    match printed {
        // Whoever leaves the pager has seen enough.
        Err(error) if error.status == ExitStatus::OutputClosed => Ok(ExitCode::SUCCESS),
        printed => printed.map(|()| ExitCode::SUCCESS),
    }
}

/// Starts the pager of the user. Returns `None` if there is no terminal, or nobody wants a pager, or it does not start.
fn start(screen: Screen, environment: &Environment) -> Option<Child> {
    let chosen = environment.get("PAGER").map_or(Some(DEFAULT), |pager| pager.to_str())?.trim();
    if !screen.is_terminal || chosen.is_empty() || chosen == "cat" {
        return None;
    }
    let mut words = chosen.split_whitespace();
    let mut command = if chosen.contains(|c: char| "|&;<>()$`\\\"'*?[#~=%".contains(c)) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", chosen]);
        command
    } else {
        let mut command = Command::new(words.next()?);
        command.args(words);
        command
    };
    if environment.get("LESS").is_none() {
        command.env("LESS", LESS);
    }
    command.stdin(Stdio::piped()).spawn().ok()
}
