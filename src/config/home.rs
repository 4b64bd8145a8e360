//! Every path under `~/.kontekst`.

use std::path::{Path, PathBuf};

/// The data directory: `$KONTEKST_HOME`, else `~/.kontekst`.
///
/// The only place that knows file names in it, and the only caller of `directories`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

/// There is no home directory to put `.kontekst` in.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell the home directory of this user")]
pub struct NoHome;

impl Home {
    /// Finds the directory; does not create it.
    ///
    /// `chosen` is the value of `KONTEKST_HOME`. Works in an empty environment, as cron gives it:
    /// the user database is asked then.
    ///
    /// # Errors
    ///
    /// [`NoHome`] when neither the variable nor the user database names one.
    pub fn find(chosen: Option<PathBuf>) -> Result<Self, NoHome> {
        if let Some(root) = chosen.filter(|path| !path.as_os_str().is_empty()) {
            return Ok(Self { root: std::path::absolute(&root).unwrap_or(root) });
        }
        let base = directories::BaseDirs::new().ok_or(NoHome)?;
        Ok(Self { root: base.home_dir().join(".kontekst") })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    pub fn active_session(&self) -> PathBuf {
        self.root.join("active_session")
    }

    pub fn log(&self) -> PathBuf {
        self.root.join("daemon.log")
    }

    pub fn agents(&self) -> PathBuf {
        self.root.join("agents")
    }

    pub fn skills(&self) -> PathBuf {
        self.root.join("skills")
    }

    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// Sockets, locks, the token and `daemon.json`; nothing in it outlives a reboot in meaning.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    pub fn socket(&self) -> PathBuf {
        self.run().join("daemon.sock")
    }

    /// Held by the daemon for its life.
    pub fn daemon_lock(&self) -> PathBuf {
        self.run().join("daemon.lock")
    }

    /// Held by a client while it starts a daemon.
    pub fn spawn_lock(&self) -> PathBuf {
        self.run().join("spawn.lock")
    }

    pub fn daemon_info(&self) -> PathBuf {
        self.run().join("daemon.json")
    }

    pub fn token(&self) -> PathBuf {
        self.run().join("token")
    }
}
