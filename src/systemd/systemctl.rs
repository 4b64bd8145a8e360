//! Calls of `systemctl`.

use std::{io, process::Command};

use super::SystemdError;

/// The systemd of the user or of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Systemctl {
    /// The option that names it.
    scope: &'static str,
}

impl Systemctl {
    pub(crate) const USER: Self = Self { scope: "--user" };
    pub(crate) const SYSTEM: Self = Self { scope: "--system" };

    /// Runs `systemctl` with these arguments.
    ///
    /// # Errors
    ///
    /// [`SystemdError::NoSystemctl`], [`SystemdError::Start`] or [`SystemdError::Failed`].
    pub(crate) fn run(self, args: &[&str]) -> Result<(), SystemdError> {
        let output = match Command::new("systemctl").arg(self.scope).args(args).output() {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(SystemdError::NoSystemctl),
            Err(error) => return Err(SystemdError::Start(error)),
        };
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).lines().take(5).map(str::to_owned).collect();
        Err(SystemdError::Failed { command: format!("{} {}", self.scope, args.join(" ")), said })
    }
}
