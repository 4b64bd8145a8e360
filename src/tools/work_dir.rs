//! Where one run's tools work.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{FileError, workspace::Workspace};

/// The working directory of one run. Share it in an `Arc`.
pub struct WorkDir {
    workspace: Workspace,
}

/// A working directory that cannot be used.
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
    /// Opens the directory. It stays open, so that the run goes on there even if it is renamed.
    pub fn new(working_dir: &Path) -> Result<Self, WorkDirError> {
        let dir = || working_dir.to_owned();
        if !working_dir.is_absolute() {
            return Err(WorkDirError::NotAbsolute(dir()));
        }
        match Workspace::open_root(working_dir) {
            Ok(workspace) => Ok(Self { workspace }),
            Err(Errno::NOENT) => Err(WorkDirError::Missing(dir())),
            Err(Errno::NOTDIR) => Err(WorkDirError::NotADirectory(dir())),
            Err(errno) => Err(WorkDirError::Io { dir: dir(), source: errno.into() }),
        }
    }

    /// Its absolute name without links; `None` where the kernel does not tell it as text.
    pub fn real_path(&self) -> Option<&str> {
        self.workspace.absolute_names().last().map(String::as_str)
    }

    /// Whether its entries can be listed.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn check_readable(&self) -> Result<(), FileError> {
        self.workspace.open_dir("").map(drop)
    }

    /// An empty directory that has no name any more: nothing is found there and nothing can be made.
    /// `within` is where it was for a moment.
    pub fn unlinked(within: &Path) -> Result<Self, WorkDirError> {
        let io = |source| WorkDirError::Io { dir: within.to_owned(), source };
        let dir = tempfile::Builder::new().prefix(".nowhere-").tempdir_in(within).map_err(io)?;
        let place = Self::new(dir.path())?;
        dir.close().map_err(io)?;
        Ok(place)
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Does `work` on a thread of its own that the kernel lets reach the working directory and nothing
    /// else, no network either. A second wall behind the workspace: where the kernel has no Landlock,
    /// the workspace stands alone.
    pub(super) fn run_sandboxed<T: Send>(&self, work: impl FnOnce(&Workspace) -> T + Send) -> T {
        #[cfg(target_os = "linux")]
        return super::sandbox::run_sandboxed(self.workspace.root(), || work(&self.workspace));
        #[cfg(not(target_os = "linux"))]
        work(&self.workspace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_absolute_directory_that_exists() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(WorkDir::new(dir.path()).is_ok());
        assert!(matches!(WorkDir::new(Path::new("relative")), Err(WorkDirError::NotAbsolute(_))));
        assert!(matches!(WorkDir::new(&dir.path().join("no")), Err(WorkDirError::Missing(_))));
        assert!(matches!(WorkDir::new(&file), Err(WorkDirError::NotADirectory(_))));
    }

    #[test]
    fn nowhere_is_empty_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = WorkDir::unlinked(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let workspace = nowhere.workspace();
        let path = workspace.path("AGENTS.md").unwrap();
        assert!(matches!(workspace.open(&path), Err(crate::tools::FileError::Missing(_))));
    }

    #[test]
    fn a_place_can_be_shared() {
        fn shared<T: Send + Sync>() {}
        shared::<WorkDir>();
    }
}
