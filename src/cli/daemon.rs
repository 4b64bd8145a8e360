//! `kontekst daemon`: run it, stop it, restart it, read its log.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use crate::{
    client::{self, ClientError},
    config::{Bind, Home, Lock},
    core::Environment,
    daemon::{self, Mode, ProcessEnv},
    pb::ShutdownRequest,
};

use super::{error::CliError, printable::printable};

/// Runs the daemon in this terminal, or looks after the one in the background.
///
/// Nobody has to: `kontekst run` starts the daemon when it is needed. Run it here to watch it work, or
/// under systemd to have the model warm before the first question.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "As a systemd user unit, ~/.config/systemd/user/kontekst.service:
  [Service]
  ExecStart=%h/.local/bin/kontekst daemon
  Restart=on-failure
  [Install]
  WantedBy=default.target

and then `systemctl --user enable --now kontekst`."
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Serve HTTP and the web page there too, for example 127.0.0.1:8787
    #[arg(long, value_name = "ADDR")]
    http: Option<Bind>,

    /// How a client starts it.
    #[arg(long, hide = true)]
    spawned: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Stop the daemon; runs that are going end as cancelled
    Stop {
        /// Only if no run is going
        #[arg(long)]
        if_idle: bool,
    },
    /// Stop the daemon and start it again, for example after a change to config.toml
    Restart,
    /// Show the daemon's log
    Logs {
        /// Go on showing what is added
        #[arg(short, long)]
        follow: bool,
        /// How many lines to start with
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
    },
}

pub(super) fn run(args: &Args, home: &Home, environment: &Environment) -> Result<ExitCode, CliError> {
    match &args.command {
        None => {
            let mode = if args.spawned { Mode::Spawned } else { Mode::Foreground };
            daemon::serve(home, mode, process_env(environment), args.http)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Stop { if_idle }) => {
            match stop(home, *if_idle)? {
                StopOutcome::Stopped => print_status("the daemon has stopped"),
                StopOutcome::NotRunning => print_status("the daemon was not running"),
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Restart) => {
            stop(home, false)?;
            client::ensure(home)?;
            print_status("the daemon has started");
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Logs { follow, lines }) => logs(home, *lines, *follow),
    }
}

/// What this process was given that a model server may need.
pub(in crate::cli) fn process_env(environment: &Environment) -> ProcessEnv {
    // The kernel's own link to this program survives an upgrade that replaces the file.
    let link = PathBuf::from("/proc/self/exe");
    ProcessEnv {
        environment: environment.clone(),
        launcher: if link.exists() { Some(link) } else { std::env::current_exe().ok() },
        home: None,
    }
}

fn print_status(text: &str) {
    writeln!(io::stderr(), "{text}").ok();
}

enum StopOutcome {
    Stopped,
    NotRunning,
}

/// How long one that was killed may take until it is gone.
const KILLED_EXIT_LIMIT: Duration = Duration::from_secs(2);

/// Asks the daemon to stop and waits until its lock is free: it is gone then.
fn stop(home: &Home, if_idle: bool) -> Result<StopOutcome, CliError> {
    let stream = match client::probe(home) {
        Ok(stream) => stream,
        Err(ClientError::NotRunning) => return Ok(StopOutcome::NotRunning),
        Err(error) => return Err(error.into()),
    };
    let answer = client::runtime()?.block_on(async {
        let mut daemon = client::daemon(client::channel(stream).await?);
        Ok::<_, ClientError>(daemon.shutdown(ShutdownRequest { if_idle }).await?.into_inner())
    });
    let answer = match answer {
        Ok(answer) => answer,
        // One that was killed takes connections until it is quite dead. Then its lock is free.
        Err(_) if Lock::acquire(&home.daemon_lock(), KILLED_EXIT_LIMIT).is_ok() => {
            return Ok(StopOutcome::Stopped);
        }
        Err(error) => return Err(error.into()),
    };
    if answer.refused {
        return Err(CliError::failed("the daemon is busy").cause(answer.message));
    }
    drop(Lock::acquire(&home.daemon_lock(), Duration::from_secs(15)).map_err(ClientError::from)?);
    Ok(StopOutcome::Stopped)
}

fn logs(home: &Home, lines: usize, follow: bool) -> Result<ExitCode, CliError> {
    let path = home.log();
    let failed = |error: io::Error| {
        CliError::failed(format!("cannot read `{}`", path.display()))
            .cause(error.to_string())
            .hint("a daemon that runs in a terminal or under systemd logs there instead (`journalctl --user -u kontekst`)")
    };
    let mut file = File::open(&path).map_err(failed)?;
    let shown = print_tail(&mut file, lines).map_err(failed)?;
    if !shown || !follow {
        return Ok(ExitCode::SUCCESS);
    }
    let mut log = BufReader::new(file);
    let mut line = String::new();
    loop {
        if log.read_line(&mut line).map_err(failed)? == 0 {
            // The log has no event to wait for; `tail -f` looks again the same way.
            std::thread::sleep(Duration::from_millis(200));
            if was_replaced(log.get_ref(), &path) {
                log = BufReader::new(File::open(&path).map_err(failed)?);
            }
        } else if line.ends_with('\n') {
            if !print_line(&line) {
                return Ok(ExitCode::SUCCESS);
            }
            line.clear();
        }
    }
}

/// The last `lines` lines; leaves the file at its end. `false` when nobody reads any more.
fn print_tail(file: &mut File, lines: usize) -> io::Result<bool> {
    const BLOCK: u64 = 1024 * 1024;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(BLOCK)))?;
    let mut text = Vec::new();
    file.take(BLOCK).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    Ok(all[all.len().saturating_sub(lines)..].iter().all(|line| print_line(line)))
}

fn print_line(line: &str) -> bool {
    writeln!(io::stdout(), "{}", printable(line.trim_end_matches('\n'))).is_ok()
}

/// Whether another file stands at the path now.
fn was_replaced(file: &File, path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(old), Ok(new)) => old.ino() != new.ino(),
        _ => false,
    }
}
