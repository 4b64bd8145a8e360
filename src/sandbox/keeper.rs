//! The process that outlives a command by a moment: it starts the command and ends everything that is left of it.

use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::ExitStatusExt as _},
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{
    inner,
    job::{self, Job, Report},
    processes,
};

/// The first argument of an executable in this role. Its stdin is a socket, over which it reads a [`Job`] and writes a
/// [`Report`]. Its stdout and stderr are the output of the command.
pub const ROLE: &str = "keep-command";

/// Keeps one command until it has ended or the socket is closed.
///
/// # Errors
///
/// The socket cannot be used.
pub fn run() -> io::Result<()> {
    let control = job::control_socket()?;
    let Some(job) = job::receive::<Job>(&control)? else { return Ok(()) };
    let report = keep(&job, &control).unwrap_or_else(|error| Report::Failed(error.to_string()));
    // A daemon that has gone needs no report.
    job::send(&control, &report).ok();
    Ok(())
}

/// Why the keeper no longer waits.
enum Event {
    InnerEnded,
    DaemonClosed,
}

fn keep(job: &Job, control: &UnixStream) -> io::Result<Report> {
    processes::adopt_orphans()?;
    let (to_inner, theirs) = UnixStream::pair()?;
    let mut inner = Command::new(processes::this_executable()?)
        .arg(inner::ROLE)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    let sent = job::send(&to_inner, job);
    let report = sent.and_then(|()| watch(&inner, &to_inner, control));
    inner.kill().ok();
    processes::kill_all(&inner);
    let status = inner.wait()?;
    Ok(report?.unwrap_or_else(|| status_report(status)))
}

/// Waits for the end of the command or of the daemon. Returns what the inner process has said, if it said something.
fn watch(inner: &Child, from_inner: &UnixStream, control: &UnixStream) -> io::Result<Option<Report>> {
    let (sender, events) = mpsc::channel();
    let pid = Pid::from_child(inner);
    let ended = sender.clone();
    thread::Builder::new().spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        ended.send(Event::InnerEnded).ok();
    })?;
    let control = control.try_clone()?;
    thread::Builder::new().spawn(move || {
        // The daemon sends one job and nothing after it.
        job::receive::<Job>(&control).ok();
        sender.send(Event::DaemonClosed).ok();
    })?;
    match events.recv() {
        Ok(Event::InnerEnded) => {
            from_inner.set_nonblocking(true)?;
            Ok(job::receive(from_inner).unwrap_or(None))
        }
        Ok(Event::DaemonClosed) | Err(_) => Ok(None),
    }
}

fn status_report(status: ExitStatus) -> Report {
    match (status.code(), status.signal()) {
        (Some(code), _) => Report::Exited(code),
        (None, signal) => Report::Signalled(signal.unwrap_or_default()),
    }
}
