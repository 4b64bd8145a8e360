//! The working directory of a run.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{FileError, workspace::Workspace};
use crate::config::Home;

/// The working directory of one run, held open. The tools of the run share it in an `Arc`.
pub struct WorkDir {
    workspace: Workspace,
}

/// The reason why a working directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkDirError {
    #[error("the working directory must be an absolute path, not `{}`", .0.display())]
    NotAbsolute(PathBuf),
    #[error("the working directory `{}` does not exist", .0.display())]
    Missing(PathBuf),
    #[error("the working directory `{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("cannot open the working directory `{}`", .dir.display())]
    Io {
        dir: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl WorkDir {
    /// Opens the directory. It stays open, so the run continues in it even if it is renamed. The files of
    /// `home`, the data directory, are protected in it.
    ///
    /// # Errors
    ///
    /// Any [`WorkDirError`].
    pub fn new(working_dir: &Path, home: &Home) -> Result<Self, WorkDirError> {
        let dir = || working_dir.to_owned();
        if !working_dir.is_absolute() {
            return Err(WorkDirError::NotAbsolute(dir()));
        }
        match Workspace::open_root(working_dir, home.protected_paths()) {
            Ok(workspace) => Ok(Self { workspace }),
            Err(Errno::NOENT) => Err(WorkDirError::Missing(dir())),
            Err(Errno::NOTDIR) => Err(WorkDirError::NotADirectory(dir())),
            Err(errno) => Err(WorkDirError::Io { dir: dir(), source: errno.into() }),
        }
    }

    /// Returns the absolute path without symbolic links, or `None` if it is not valid UTF-8.
    pub fn real_path(&self) -> Option<&str> {
        self.workspace.absolute_names().last().map(String::as_str)
    }

    /// Checks that the entries of the directory can be listed.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn check_readable(&self) -> Result<(), FileError> {
        self.workspace.open_dir("").map(drop)
    }

    /// Creates a directory in the data directory, opens it and removes it again.
    ///
    /// The result is an empty working directory without a name: no file is found in it and none can be
    /// created.
    ///
    /// # Errors
    ///
    /// [`WorkDirError::Io`] if nothing can be created in [`Home::run`].
    pub fn unlinked(home: &Home) -> Result<Self, WorkDirError> {
        let within = home.run();
        let io = |source| WorkDirError::Io { dir: within.clone(), source };
        let dir = tempfile::Builder::new().prefix(".nowhere-").tempdir_in(&within).map_err(io)?;
        let work_dir = Self::new(dir.path(), home)?;
        dir.close().map_err(io)?;
        Ok(work_dir)
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Runs `work` on a separate thread that Landlock confines to the working directory, without any
    /// network access. This is a second line of defence: [`Workspace`] confines the paths on its own
    /// where the kernel has no Landlock.
    pub(super) fn run_sandboxed<T: Send>(&self, work: impl FnOnce(&Workspace) -> T + Send) -> T {
        #[cfg(target_os = "linux")]
        return super::sandbox::run_sandboxed(self.workspace.root(), || work(&self.workspace));
        #[cfg(not(target_os = "linux"))]
        work(&self.workspace)
    }
}

#[cfg(test)]
impl WorkDir {
    /// Opens a directory for a test in which no data directory exists.
    pub fn without_home(dir: &Path) -> Result<Self, WorkDirError> {
        let home = Home::find(Some("/nonexistent/kontekst".into())).expect("a directory is given");
        Self::new(dir, &home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_directory_is_an_absolute_path_to_an_existing_directory() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(WorkDir::without_home(dir.path()).is_ok());
        assert!(matches!(WorkDir::without_home(Path::new("relative")), Err(WorkDirError::NotAbsolute(_))));
        assert!(matches!(WorkDir::without_home(&dir.path().join("no")), Err(WorkDirError::Missing(_))));
        assert!(matches!(WorkDir::without_home(&file), Err(WorkDirError::NotADirectory(_))));
    }

    #[test]
    fn an_unlinked_working_directory_is_empty_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::find(Some(dir.path().to_owned())).unwrap();
        home.create().unwrap();
        let unlinked = WorkDir::unlinked(&home).unwrap();
        assert_eq!(std::fs::read_dir(home.run()).unwrap().count(), 0);
        let workspace = unlinked.workspace();
        let path = workspace.path("AGENTS.md").unwrap();
        assert!(matches!(workspace.open(&path), Err(crate::tools::FileError::Missing(_))));
    }

    #[test]
    fn a_working_directory_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<WorkDir>();
    }
}
