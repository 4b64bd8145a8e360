//! Runs and times a process.

use std::{
    io::{self, Read, Seek},
    os::fd::AsFd,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use wait4::Wait4;

use crate::{Failure, clock};

/// A process that takes longer than this counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A process that was started and may still run.
pub(crate) struct Running {
    child: Child,
    stdout: ChildStdout,
    stderr: std::fs::File,
    command: String,
    pub started: u64,
}

/// A process that has ended successfully.
pub(crate) struct Finished {
    pub started: u64,
    pub ended: u64,
    pub stdout: Vec<u8>,
    /// The length of stdout after each read, and the time.
    arrivals: Vec<(usize, u64)>,
}

/// Starts a command and captures its stdout and stderr.
pub(crate) fn start(mut command: Command) -> Result<Running, Failure> {
    let stderr = tempfile::tempfile()?;
    command.stdout(Stdio::piped()).stderr(stderr.try_clone()?);
    let started = clock::now();
    let mut child =
        command.spawn().map_err(|error| format!("cannot run {:?}: {error}", command.get_program()))?;
    let stdout = child.stdout.take().expect("stdout is piped");
    Ok(Running { child, stdout, stderr, command: format!("{command:?}"), started })
}

/// Starts a command and waits for its end.
pub(crate) fn run(command: Command) -> Result<Finished, Failure> {
    start(command)?.finish()
}

impl Running {
    /// Reads stdout to its end and reaps the process.
    ///
    /// # Errors
    ///
    /// Fails if the process fails or hangs. The message contains its stderr.
    pub(crate) fn finish(mut self) -> Result<Finished, Failure> {
        let (mut stdout, mut arrivals) = (Vec::new(), Vec::new());
        let mut block = vec![0; 64 * 1024];
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !readable(&self.stdout, left)? {
                self.child.kill()?;
                self.child.wait()?;
                return Err(format!("{} hangs", self.command).into());
            }
            let read = self.stdout.read(&mut block)?;
            if read == 0 {
                break;
            }
            stdout.extend_from_slice(&block[..read]);
            arrivals.push((stdout.len(), clock::now()));
        }
        let used = self.child.wait4()?;
        let ended = clock::now();
        if !used.status.success() {
            let mut text = String::new();
            self.stderr.rewind()?;
            self.stderr.read_to_string(&mut text)?;
            return Err(format!("{}: {}: {}", self.command, used.status, text.trim()).into());
        }
        Ok(Finished { started: self.started, ended, stdout, arrivals })
    }
}

fn readable(stdout: &ChildStdout, timeout: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec::try_from(timeout).map_err(io::Error::other)?)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

impl Finished {
    /// Returns the wall time in milliseconds.
    pub(crate) fn wall(&self) -> f64 {
        clock::millis(self.started, self.ended)
    }

    /// Returns the time from the start to the first byte on stdout, in milliseconds.
    pub(crate) fn first_byte(&self) -> Result<f64, Failure> {
        let (_, at) = self.arrivals.first().ok_or("nothing on stdout")?;
        Ok(clock::millis(self.started, *at))
    }

    /// Returns the server's time stamps in stdout, in order, each with the time at which its last byte arrived.
    pub(crate) fn stamps(&self) -> Vec<(u64, u64)> {
        let mut stamps = Vec::new();
        let mut from = 0;
        while let Some(start) = self.stdout[from..].iter().position(u8::is_ascii_digit) {
            let start = from + start;
            let digits = self.stdout[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            from = start + digits;
            let number =
                std::str::from_utf8(&self.stdout[start..from]).ok().and_then(|text| text.parse().ok());
            // curl prints whole events with other numbers in them, so only a time within the run counts.
            let Some(stamp) = number.filter(|stamp| (self.started..self.ended).contains(stamp)) else {
                continue;
            };
            if let Some((_, at)) = self.arrivals.iter().find(|(bytes, _)| *bytes >= from) {
                stamps.push((stamp, *at));
            }
        }
        stamps
    }
}

/// Runs a command and returns its peak memory in bytes.
///
/// A child inherits the peak of the process that starts it, and this one has grown by then. So a new and small process
/// of this benchmark starts the command and reads its rusage.
pub(crate) fn peak_memory(command: &Command) -> Result<u64, Failure> {
    let mut through = Command::new(std::env::current_exe()?);
    through.arg("--launch").arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    if let Some(dir) = command.get_current_dir() {
        through.current_dir(dir);
    }
    through.env_clear();
    through.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ok(String::from_utf8(run(through)?.stdout)?.trim().parse()?)
}

/// Does the part of [`peak_memory`] that runs in the new process.
pub(crate) fn launch(program: &str, args: &[String]) -> Result<u64, Failure> {
    let child = Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let used = child.wait4()?;
    if used.status.success() { Ok(used.rusage.maxrss) } else { Err(used.status.to_string().into()) }
}
