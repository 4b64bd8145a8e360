//! Calls of `systemctl`.

use std::{
    io,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::SystemdError;

/// The systemd of the user or of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Systemctl {
    /// The option that names it.
    scope: &'static str,
}

impl Systemctl {
    pub const USER: Self = Self { scope: "--user" };
    pub const SYSTEM: Self = Self { scope: "--system" };

    /// Runs `systemctl` with these arguments, for as long as it takes.
    ///
    /// # Errors
    ///
    /// [`SystemdError::NoSystemctl`], [`SystemdError::Start`] or [`SystemdError::Failed`].
    pub fn run(self, args: &[&str]) -> Result<(), SystemdError> {
        self.ended(args, &self.start(args)?.wait_with_output().map_err(SystemdError::Start)?)
    }

    /// Does what [`Systemctl::run`] does, and ends `systemctl` after `limit`: it waits for minutes for a systemd that hangs.
    ///
    /// # Errors
    ///
    /// As [`Systemctl::run`], or [`SystemdError::NoAnswer`].
    pub(crate) fn run_within(self, limit: Duration, args: &[&str]) -> Result<(), SystemdError> {
        let mut process = self.start(args)?;
        let has_ended = || {
            let handle = pidfd_open(Pid::from_child(&process), PidfdFlags::empty())?;
            let limit = Timespec::try_from(limit).unwrap_or_default();
            poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit))
        };
        // Without a handle it is waited for as long as it takes.
        let is_silent = has_ended().is_ok_and(|ended| ended == 0);
        if is_silent {
            process.kill().ok();
        }
        let output = process.wait_with_output().map_err(SystemdError::Start)?;
        if is_silent { Err(SystemdError::NoAnswer(limit)) } else { self.ended(args, &output) }
    }

    fn start(self, args: &[&str]) -> Result<Child, SystemdError> {
        let mut command = Command::new("systemctl");
        command.arg(self.scope).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SystemdError::NoSystemctl,
            _ => SystemdError::Start(error),
        })
    }

    fn ended(self, args: &[&str], output: &Output) -> Result<(), SystemdError> {
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).lines().take(5).map(str::to_owned).collect();
        Err(SystemdError::Failed { command: format!("{} {}", self.scope, args.join(" ")), said })
    }
}
