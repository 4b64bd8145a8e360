//! Getting a model file from the network, whole or not at all.
//!
//! Bytes go into `NAME.part` and get their name only when all of them are there, checked and on disk. What
//! breaks off is kept and goes on where it was, as long as the server still has the same file.

mod part;
mod request;
mod source;
mod transfer;

use std::{io, path::PathBuf, time::Duration};

use url::Url;

pub use self::{
    source::{RemoteFile, Source, files},
    transfer::{Outcome, fetch},
};
use crate::config::PathError;

/// How the network is reached.
#[derive(Clone, Debug)]
pub struct DownloadConfig {
    /// Where `ORG/NAME` is looked up, such as `https://huggingface.co`.
    pub hub: Url,
    /// Shown to the hub and to nobody else.
    pub token: Option<String>,
    pub proxy: Option<ureq::Proxy>,
    pub timing: Timing,
}

/// How long things may take. There is no limit on a whole file: slow but moving is fine.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For a connection to be made.
    pub connect: Duration,
    /// Without a byte.
    pub stall: Duration,
    /// Before the first new try; doubles with each further one.
    pub pause: Duration,
    /// Tries that bring nothing new before it is given up.
    pub tries: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            stall: Duration::from_secs(60),
            pause: Duration::from_secs(1),
            tries: 5,
        }
    }
}

/// What is happening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullEvent {
    /// A file is coming, of which `have` bytes are here.
    Started { name: String, have: u64, total: Option<u64> },
    /// Bytes that are here by now.
    Received { have: u64 },
    /// What was here is of no use.
    Restarted { why: &'static str },
    /// It broke off, and is tried again in a while.
    Retrying { why: String, wait: Duration },
    /// All bytes are here; they are being written to the disk.
    Saving,
}

/// Why a file is not there.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// What was asked for has no meaning.
    #[error("{0}")]
    Source(String),
    /// The repository has no such file, or several that may be meant.
    #[error("{fact}")]
    Choice { fact: String, files: Vec<String> },
    /// `have` bytes are in the part file.
    #[error("cancelled after {have} bytes of {name}")]
    Cancelled { name: String, have: u64, total: Option<u64> },
    /// Nothing answered, or the connection broke too often. `have` bytes are in the part file.
    #[error("cannot get {name} from {host}")]
    Unreachable { name: String, host: String, have: u64, source: io::Error },
    #[error("{host} answered {status} for {path}")]
    Refused { host: String, path: String, status: u16 },
    #[error("{host} sent a broken answer: {fact}")]
    Answer { host: String, fact: String },
    #[error("{name} has the checksum {found}, not {expected}")]
    Checksum { name: String, expected: String, found: String },
    #[error("`{}` is there already and is another file", .0.display())]
    Exists(PathBuf),
    #[error("`{}` is being written by another process", .0.display())]
    Busy(PathBuf),
    #[error("{name} needs {need} bytes and there are {free} in `{}`", dir.display())]
    Space { name: String, need: u64, free: u64, dir: PathBuf },
    #[error(transparent)]
    Path(#[from] PathError),
}
