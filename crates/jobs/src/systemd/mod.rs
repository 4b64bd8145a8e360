//! systemd: the unit files that kontekst writes, and calls of `systemctl`.

mod systemctl;
mod unit;
mod user_manager;

pub use systemctl::Systemctl;
pub use unit::{Unit, is_ours, path_text, word};
pub(crate) use user_manager::UserManager;
pub use user_manager::user_units;

use std::{io, path::PathBuf, time::Duration};

use kontekst_store::config::PathError;

/// A reason why a unit was not written or `systemctl` did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum SystemdError {
    #[error("there is no systemd on this machine")]
    NoSystemctl,
    #[error("cannot run systemctl")]
    Start(#[source] io::Error),
    /// `said` has the first lines of what it printed.
    #[error("`systemctl {command}` failed")]
    Failed { command: String, said: Vec<String> },
    #[error("systemd has not answered for {} s", .0.as_secs())]
    NoAnswer(Duration),
    #[error("`{}` exists, and it was not written by this command", .0.display())]
    Foreign(PathBuf),
    #[error("`{}` cannot stand in a unit file", .0.display())]
    BadPath(PathBuf),
    #[error("another process holds `{}`", .0.display())]
    Busy(PathBuf),
    #[error(transparent)]
    Path(#[from] PathError),
}
