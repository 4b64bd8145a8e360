//! The process that confines itself and becomes the command.

use std::{io, os::unix::process::CommandExt as _, process::Command};

use super::job::{self, Job, Report};

/// The first argument of an executable in this role. Its stdin is a socket, over which it reads a [`Job`] and writes a
/// [`Report`] if the command cannot be started.
pub const ROLE: &str = "inner-command";

/// Becomes the command. Returns only if that fails.
///
/// # Errors
///
/// The socket cannot be used.
pub fn run() -> io::Result<()> {
    let control = job::control_socket()?;
    end_with_parent()?;
    // A keeper that ended before the call above has closed the socket.
    let Some(job) = job::receive::<Job>(&control)? else { return Ok(()) };
    let error = become_command(&job);
    job::send(&control, &Report::Failed(error.to_string()))
}

#[cfg(target_os = "linux")]
fn end_with_parent() -> io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent() -> io::Result<()> {
    Ok(())
}

fn become_command(job: &Job) -> io::Error {
    // A session of its own has no terminal.
    if let Err(error) = rustix::process::setsid() {
        return error.into();
    }
    shell(job).exec()
}

fn shell(job: &Job) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &job.line])
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)));
    command
}
