//! Calls of `systemctl`.

use std::{io, process::Command};

use crate::cli::error::CliError;

/// The systemd of the user or of the machine.
pub(super) struct Systemctl {
    /// The option that names it.
    scope: &'static str,
}

impl Systemctl {
    /// Returns the systemd of this user, or that of the machine.
    ///
    /// # Errors
    ///
    /// There is none, or it does not answer.
    pub(super) fn find(of_system: bool) -> Result<Self, CliError> {
        let systemctl = Self { scope: if of_system { "--system" } else { "--user" } };
        systemctl.run(&["show-environment"]).map_err(|error| match error.message.as_str() {
            NONE => error
                .hint("nothing has to be installed: `kontekst run` starts the daemon when it is needed")
                .hint("to start it with the machine, put this line into your crontab: @reboot kontekst daemon")
                .hint("`kontekst daemon install --print` shows the units"),
            _ => error
                .hint("log in to a session of your own; `su` and `sudo` have none, and `loginctl enable-linger USER` makes one")
                .hint("`--no-start` writes the units and calls nothing"),
        })?;
        Ok(systemctl)
    }

    /// Runs `systemctl` with these arguments.
    ///
    /// # Errors
    ///
    /// It is not there, or it fails; then the error has what it printed.
    pub(super) fn run(&self, args: &[&str]) -> Result<(), CliError> {
        let output = match Command::new("systemctl").arg(self.scope).args(args).output() {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(CliError::failed(NONE)),
            Err(error) => return Err(CliError::failed("cannot run systemctl").cause(error.to_string())),
        };
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let error = CliError::failed(format!("`systemctl {} {}` failed", self.scope, args.join(" ")));
        Err(said.lines().take(5).fold(error, CliError::cause))
    }
}

/// The message of an error where there is no systemd.
const NONE: &str = "there is no systemd on this machine";
