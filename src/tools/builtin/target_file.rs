//! The file that a write or an edit is about: what it is now, what a person was shown, what it becomes.

use std::sync::Arc;

use crate::tools::{
    Change, Effect, FileError, Fingerprint, InnerPath, Proposal, Workspace, protected,
    workspace::{ExistingFile, WriteTarget},
};

use super::diff;

pub struct TargetFile<'a> {
    workspace: &'a Workspace,
    path: InnerPath,
    spot: WriteTarget,
    old: Option<ExistingFile>,
}

impl<'a> TargetFile<'a> {
    /// Finds the file and reads it. `limit` is the largest file to touch, in bytes.
    pub fn find(workspace: &'a Workspace, given: &str, limit: u64) -> Result<Self, FileError> {
        let path = workspace.path(given)?;
        let write_target = workspace.locate(&path)?;
        let old = write_target.read_existing(limit)?;
        Ok(Self { workspace, path, spot: write_target, old })
    }

    pub fn path(&self) -> &InnerPath {
        &self.path
    }

    pub fn old(&self) -> Option<&[u8]> {
        self.old.as_ref().map(|old| &*old.content)
    }

    fn fingerprint(&self) -> Fingerprint {
        self.old().map_or(Fingerprint::Missing, Fingerprint::of)
    }

    /// What a person is shown for a change to `new`, or for a call that would fail.
    pub fn proposal(&self, new: Result<&str, &str>) -> Proposal {
        let (preview, effect) = match new {
            Ok(new) => (self.preview(new), Effect::Change(Arc::new(self.change(new)))),
            Err(why) => (failure_preview(why), Effect::Fails(why.to_owned())),
        };
        let caution = self.caution(new.unwrap_or_default());
        Proposal { preview, caution, target: Some(self.fingerprint()), effect }
    }

    fn change(&self, new: &str) -> Change {
        Change { path: self.path.to_string(), old: self.old().map(<[u8]>::to_vec), new: new.to_owned() }
    }

    fn preview(&self, new: &str) -> String {
        let path = self.path.as_str();
        match self.old().map(std::str::from_utf8) {
            None => diff::unified(path, None, new),
            Some(Ok(old)) if old == new => format!("({path} already has this content)\n"),
            Some(Ok(old)) => diff::unified(path, Some(old), new),
            Some(Err(_)) => {
                let bytes = self.old().map_or(0, <[u8]>::len);
                let instead = diff::unified(path, None, new);
                format!("(replaces {bytes} bytes that are not text)\n{instead}")
            }
        }
    }

    /// Why a person should look, in one sentence.
    fn caution(&self, new: &str) -> Option<String> {
        let root = || self.workspace.absolute_names().iter().find_map(|name| protected::root_caution(name));
        let links = || {
            let links = self.old.as_ref()?.link_count();
            (links > 1).then(|| format!("{} is one of {links} names of one file", self.path))
        };
        let owner = || {
            let foreign = !self.old.as_ref()?.is_owned_by_daemon_user();
            foreign.then(|| format!("{} belongs to another user", self.path))
        };
        protected::path_caution(self.spot.real_path())
            .or_else(|| protected::path_caution(self.path.as_str()))
            .or_else(root)
            .or_else(links)
            .or_else(owner)
            .or_else(|| protected::hidden_character_caution(self.path.as_str()))
            .or_else(|| protected::hidden_character_caution(new))
    }

    /// Whether the file is still what was approved.
    pub fn check_unchanged(&self, approved: &Proposal) -> Result<(), FileError> {
        if approved.target.as_ref() == Some(&self.fingerprint()) {
            Ok(())
        } else {
            Err(FileError::Stale(self.path.to_string()))
        }
    }

    /// Writes `new`, if the file is still what was approved.
    pub fn write(&self, new: &str, approved: &Proposal) -> Result<(), FileError> {
        self.check_unchanged(approved)?;
        // A path that leads to a protected file only now was not approved as one.
        let cautioned = approved.caution.is_some() || self.caution(new).is_none();
        if !cautioned {
            return Err(FileError::Stale(self.path.to_string()));
        }
        if self.old.is_none() && !self.spot.has_parent_dir() {
            return self.workspace.locate_creating_parents(&self.path)?.replace(new.as_bytes(), None);
        }
        self.spot.replace(new.as_bytes(), self.old.as_ref())
    }
}

/// Why there is no target.
pub enum TargetError {
    /// The call makes no sense.
    InvalidCall(String),
    File(FileError),
}

impl TargetError {
    pub fn message(&self) -> String {
        match self {
            Self::InvalidCall(why) => why.clone(),
            Self::File(error) => error.message(),
        }
    }

    /// What a person is shown for a call that cannot even begin.
    pub fn proposal(&self) -> Proposal {
        let why = self.message();
        let preview = failure_preview(&why);
        let effect = match self {
            Self::InvalidCall(_) => Effect::Fails(why),
            Self::File(_) => Effect::Refused(why),
        };
        Proposal { preview, effect, ..Proposal::default() }
    }
}

impl From<String> for TargetError {
    fn from(why: String) -> Self {
        Self::InvalidCall(why)
    }
}

impl From<FileError> for TargetError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// What is shown for a call that cannot succeed.
pub fn failure_preview(why: &str) -> String {
    format!("(this call would fail: {why})\n")
}
