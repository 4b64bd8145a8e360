//! The file that a write or an edit is about: what it is now, what a person was shown, what it becomes.

use std::sync::Arc;

use crate::tools::{
    Change, Effect, FileError, Fingerprint, InnerPath, Proposal, Workspace, protected,
    workspace::{Existing, Spot},
};

use super::diff;

pub struct Target<'a> {
    workspace: &'a Workspace,
    path: InnerPath,
    spot: Spot,
    old: Option<Existing>,
}

impl<'a> Target<'a> {
    /// Finds the file and reads it. `limit` is the largest file to touch, in bytes.
    pub fn find(workspace: &'a Workspace, given: &str, limit: u64) -> Result<Self, FileError> {
        let path = workspace.path(given)?;
        let spot = workspace.locate(&path)?;
        let old = spot.existing(limit)?;
        Ok(Self { workspace, path, spot, old })
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
            Err(why) => (would_fail(why), Effect::Fails(why.to_owned())),
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
        let root = || self.workspace.names().iter().find_map(|name| protected::reason_for_root(name));
        let links = || {
            let links = self.old.as_ref()?.links();
            (links > 1).then(|| format!("{} is one of {links} names of one file", self.path))
        };
        let owner = || {
            let foreign = !self.old.as_ref()?.is_ours();
            foreign.then(|| format!("{} belongs to another user", self.path))
        };
        protected::reason(self.spot.real())
            .or_else(|| protected::reason(self.path.as_str()))
            .or_else(root)
            .or_else(links)
            .or_else(owner)
            .or_else(|| protected::hidden_characters(self.path.as_str()))
            .or_else(|| protected::hidden_characters(new))
    }

    /// Whether the file is still what was approved.
    pub fn still(&self, approved: &Proposal) -> Result<(), FileError> {
        if approved.target.as_ref() == Some(&self.fingerprint()) {
            Ok(())
        } else {
            Err(FileError::Changed(self.path.to_string()))
        }
    }

    /// Writes `new`, if the file is still what was approved.
    pub fn put(&self, new: &str, approved: &Proposal) -> Result<(), FileError> {
        self.still(approved)?;
        // A path that leads to a protected file only now was not approved as one.
        let cautioned = approved.caution.is_some() || self.caution(new).is_none();
        if !cautioned {
            return Err(FileError::Changed(self.path.to_string()));
        }
        if self.old.is_none() && !self.spot.has_parents() {
            return self.workspace.locate_making_parents(&self.path)?.replace(new.as_bytes(), None);
        }
        self.spot.replace(new.as_bytes(), self.old.as_ref())
    }
}

/// Why there is no target.
pub enum NoTarget {
    /// The call makes no sense.
    Wrong(String),
    OutOfReach(FileError),
}

impl NoTarget {
    pub fn why(&self) -> String {
        match self {
            Self::Wrong(why) => why.clone(),
            Self::OutOfReach(error) => error.explained(),
        }
    }

    /// What a person is shown for a call that cannot even begin.
    pub fn proposal(&self) -> Proposal {
        let why = self.why();
        let preview = would_fail(&why);
        let effect = match self {
            Self::Wrong(_) => Effect::Fails(why),
            Self::OutOfReach(_) => Effect::Refused(why),
        };
        Proposal { preview, effect, ..Proposal::default() }
    }
}

impl From<String> for NoTarget {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

impl From<FileError> for NoTarget {
    fn from(error: FileError) -> Self {
        Self::OutOfReach(error)
    }
}

/// What is shown for a call that cannot succeed.
pub fn would_fail(why: &str) -> String {
    format!("(this call would fail: {why})\n")
}
