//! One command and its limits.

use std::{os::fd::BorrowedFd, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

/// A command line for `sh -c`, and what it may do.
#[derive(Clone, Debug)]
pub struct CommandSpec<'a> {
    pub line: &'a str,
    /// The directory in which the command may write, besides `writable` and temporary directories of its own.
    pub work_dir: BorrowedFd<'a>,
    /// All environment variables of the command.
    pub environment: Vec<(String, String)>,
    /// Paths in `work_dir`, relative to it, that the command may read and not change. Each has to exist, without links. The
    /// empty path is `work_dir` itself.
    pub read_only: Vec<PathBuf>,
    /// Absolute paths that the command needs and may only read, wherever they are, besides those of [`super::View`]. What would
    /// show more than one thing, such as the home directory itself, is left out.
    pub readable: Vec<PathBuf>,
    /// Other directories in which the command may write. Without namespaces, nothing could keep it from writing single names in
    /// them, so they are left out there.
    pub writable: Vec<WritableDir>,
    /// Lets the command use the network of the machine.
    pub network: bool,
    /// The bits that the modes of its new files do not have.
    pub umask: u32,
    pub limits: Limits,
}

/// A directory outside of the working directory of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritableDir {
    /// An absolute path without links. A directory that commands do not see is left out.
    pub path: PathBuf,
    /// Paths in it, relative to it, that the command may read and not change. Each has to exist, without links.
    pub read_only: Vec<PathBuf>,
}

/// The resources that a command may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The time after which the command is ended.
    pub time: Duration,
    /// The bytes of output after which the command is ended.
    pub output: u64,
    /// The processes and threads that it may have at a time.
    pub processes: u64,
    /// The bytes of memory of each process that are not shared with a file.
    pub memory: u64,
    /// The largest file that it may write, in bytes.
    pub file_size: u64,
    /// The bytes that all files in its temporary directories may have together.
    pub temporary: u64,
}

impl Default for Limits {
    /// Enough for a build or a test suite on a developer's machine, and small enough that a mistake does not stop the
    /// machine.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(120),
            output: 64 << 20,
            processes: 1024,
            memory: 8 << 30,
            file_size: 4 << 30,
            temporary: 1 << 30,
        }
    }
}
