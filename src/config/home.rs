//! Every path under `~/.kontekst`.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{PathContext, PathError};

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

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Another user owns it and could swap what is in it.
    #[error("`{}` belongs to user {owner}, not to this user ({user})", path.display())]
    NotOurs { path: PathBuf, owner: u32, user: u32 },
    /// Others may enter it and the mode cannot be changed.
    #[error("`{}` is open to other users (mode {mode:03o}) and that cannot be changed", path.display())]
    Open {
        path: PathBuf,
        mode: u32,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Path(#[from] PathError),
}

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

    /// Makes the directory and those in it, for this user only (0700). Repairs looser modes.
    ///
    /// Cheap when all is well: a few system calls.
    ///
    /// # Errors
    ///
    /// [`HomeError`] when one of them belongs to another user or stays open to others.
    pub fn create(&self) -> Result<(), HomeError> {
        for dir in [self.root.clone(), self.run(), self.agents(), self.skills(), self.sessions()] {
            private_dir(&dir)?;
        }
        Ok(())
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

    /// What people think of answers.
    pub fn feedback(&self) -> PathBuf {
        self.root.join("feedback.jsonl")
    }

    /// What the workers of runs do.
    pub fn teams(&self) -> PathBuf {
        self.root.join("teams")
    }

    /// Makes [`Home::teams`], for this user only.
    ///
    /// # Errors
    ///
    /// As [`Home::create`].
    pub fn create_teams(&self) -> Result<(), HomeError> {
        private_dir(&self.teams())
    }

    /// Sockets, locks, the token and `daemon.json`; nothing in it outlives a reboot in meaning.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    pub fn socket(&self) -> PathBuf {
        self.run().join("daemon.sock")
    }

    /// Where `kontekst rpc` hands its bytes over.
    pub fn kaiak_socket(&self) -> PathBuf {
        self.run().join("kaiak.sock")
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

    /// What model servers have made of conversations; all of it can be made again.
    pub fn kv(&self) -> PathBuf {
        self.root.join("cache").join("kv")
    }

    /// Makes [`Home::kv`], for this user only.
    ///
    /// # Errors
    ///
    /// As [`Home::create`].
    pub fn create_kv(&self) -> Result<PathBuf, HomeError> {
        private_dir(&self.root.join("cache"))?;
        private_dir(&self.kv())?;
        Ok(self.kv())
    }

    pub fn token(&self) -> PathBuf {
        self.run().join("token")
    }
}

/// Puts the home directory of this user for a leading `~/`. Other paths, `~user` too, stay as they are.
pub(super) fn expand(path: &Path) -> PathBuf {
    let Ok(rest) = path.strip_prefix("~") else { return path.to_owned() };
    match directories::BaseDirs::new() {
        Some(base) => base.home_dir().join(rest),
        None => path.to_owned(),
    }
}

/// Makes one directory that must not exist yet, for this user only.
pub(super) fn new_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn private_dir(path: &Path) -> Result<(), HomeError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).context(path)?;
    // Through one handle, so that what is looked at is what is repaired.
    let flags = (OFlags::DIRECTORY | OFlags::NONBLOCK).bits().cast_signed();
    let dir = OpenOptions::new().read(true).custom_flags(flags).open(path).context(path)?;
    let meta = dir.metadata().context(path)?;
    let user = rustix::process::geteuid().as_raw();
    if meta.uid() != user {
        return Err(HomeError::NotOurs { path: path.to_owned(), owner: meta.uid(), user });
    }
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        dir.set_permissions(PermissionsExt::from_mode(0o700)).map_err(|source| HomeError::Open {
            path: path.to_owned(),
            mode,
            source,
        })?;
    }
    Ok(())
}
