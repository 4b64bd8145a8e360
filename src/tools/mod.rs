//! What the model may call, and where its file tools may reach.

pub mod builtin;
mod protected;
#[cfg(target_os = "linux")]
mod sandbox;
pub mod schema;
mod toolbox;
mod work_dir;
mod workspace;

pub use toolbox::{ClientTool, Concurrency, Executor, ToolBox, ToolBoxError};
pub use work_dir::{WorkDir, WorkDirError};
pub use workspace::{FileError, InnerPath, Workspace};

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::core::{Cancel, ToolDef, ToolOutcome};

/// What the kernel holds file tools to, in words. Tried once.
pub fn sandbox_description() -> &'static str {
    static LEVEL: OnceLock<String> = OnceLock::new();
    LEVEL.get_or_init(|| {
        #[cfg(target_os = "linux")]
        let level = sandbox::description();
        #[cfg(not(target_os = "linux"))]
        let level = "not held by the kernel: Landlock is Linux's".to_owned();
        level
    })
}

/// Something the model may call that runs in the daemon. Blocking by design.
pub trait Tool: Send + Sync {
    /// The definition the model sees; the same bytes each time.
    fn def(&self) -> ToolDef;

    /// Whether a person must say yes first.
    fn needs_approval(&self) -> bool {
        true
    }

    /// What a call with these arguments would do, read from the real files and without side effects.
    fn propose(&self, args: &Value, place: &WorkDir) -> Proposal {
        let _ = (args, place);
        Proposal::default()
    }

    /// Does it. `approved` is what [`Tool::propose`] gave and a person saw: when its target has
    /// changed since, nothing is done and the outcome says so.
    fn execute(&self, args: &Value, place: &WorkDir, approved: &Proposal, cancel: &Cancel) -> ToolOutcome;
}

/// What a person is shown before a call runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// For example a unified diff. Empty when there is nothing to show.
    pub preview: String,
    /// Why a person should look even when approval is automatic, for example a write to a git hook.
    /// Automatic approval does not cover such a call.
    pub caution: Option<String>,
    /// The bytes the preview was made from.
    pub target: Option<Fingerprint>,
    pub effect: Effect,
}

/// What a call would do to a file, for those who show more than a preview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// It changes no file, or nobody can tell beforehand.
    #[default]
    Unknown,
    Change(Arc<Change>),
    /// Nothing: the call would fail, and this is why.
    Fails(String),
    /// Nothing: the file is out of reach, and this is why.
    Refused(String),
}

/// One file before and after. Exactly `new` is written if exactly `old` is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Relative to the working directory, in plain form.
    pub path: String,
    /// `None` when there is no such file yet.
    pub old: Option<Vec<u8>>,
    pub new: String,
}

/// The identity of a file's content at one moment. Equal fingerprints mean equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fingerprint {
    Missing,
    Content { bytes: u64, hash: [u8; 32] },
}

impl Fingerprint {
    pub fn of(content: &[u8]) -> Self {
        Self::Content { bytes: content.len() as u64, hash: Sha256::digest(content).into() }
    }
}
