//! The rules of `.gitignore` files.

use std::{io::Read, sync::Arc};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::Workspace;

/// The maximum number of bytes that are read of one `.gitignore` file.
const MAX_BYTES: u64 = 64 * 1024;

/// The ignore rules of one directory and of all directories above it.
#[derive(Clone)]
pub(super) struct IgnoreRules {
    /// Ordered from the root down.
    files: Vec<Arc<Gitignore>>,
}

impl IgnoreRules {
    pub(super) fn none() -> Self {
        Self { files: Vec::new() }
    }

    /// Returns these rules together with those of the `.gitignore` file in the directory `path`, if it
    /// has one.
    pub(super) fn with_file_in(&self, path: &str, workspace: &Workspace) -> Self {
        let mut rules = self.clone();
        let name = if path.is_empty() { ".gitignore".to_owned() } else { format!("{path}/.gitignore") };
        let Some(text) = read(&name, workspace) else { return rules };
        let mut builder = GitignoreBuilder::new(path);
        for line in text.lines() {
            // A line that is not a valid glob is skipped, as git does.
            drop(builder.add_line(None, line));
        }
        if let Ok(file) = builder.build() {
            rules.files.push(file.into());
        }
        rules
    }

    /// Returns true if the rules exclude `path`. The caller has already checked the directories above it.
    pub(super) fn is_ignored(&self, path: &str, is_dir: bool) -> bool {
        let verdicts = self.files.iter().rev().map(|file| file.matched(path, is_dir));
        verdicts
            .filter(|verdict| !verdict.is_none())
            .map(|verdict| matches!(verdict, Match::Ignore(_)))
            .next()
            == Some(true)
    }
}

fn read(name: &str, workspace: &Workspace) -> Option<String> {
    let path = workspace.path(name).ok()?;
    let mut bytes = Vec::new();
    workspace.open(&path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
