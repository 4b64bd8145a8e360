//! A path as a model writes it, checked before anything is opened.

use std::fmt;

use super::FileError;

/// Longest path that is looked at, in bytes. Source: `PATH_MAX` of Linux.
const MAX_PATH: usize = 4096;
/// Longest name of one file, in bytes. Source: `NAME_MAX` of Linux.
const MAX_NAME: usize = 255;

/// A relative path in plain form: no `.`, no `..`, no empty part, no control character.
///
/// What it names may still be a link to elsewhere; the workspace sees to that when it opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerPath(String);

impl InnerPath {
    /// Reads what the model gave. A `..` that stays inside is resolved; an absolute path is taken when
    /// it starts with one of `roots`, because weak models send those.
    pub(super) fn parse(given: &str, roots: &[String]) -> Result<Self, FileError> {
        let refuse = |why| FileError::BadPath { path: escaped_start(given), why };
        let parts = split_path(given, roots).map_err(refuse)?;
        if given.ends_with('/') || parts.is_empty() {
            return Err(FileError::Directory(escaped_start(given)));
        }
        Ok(Self(parts.join("/")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InnerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The parts of a path or of a glob pattern, with `.` and `..` worked out. Empty for the root itself.
///
/// # Errors
///
/// Why it cannot be used, as the second half of a sentence.
pub(super) fn split_path<'a>(given: &'a str, roots: &[String]) -> Result<Vec<&'a str>, &'static str> {
    if given.is_empty() {
        return Err("is empty");
    }
    if given.len() > MAX_PATH {
        return Err("is longer than 4096 bytes");
    }
    // Also NUL, which would end the path early, and newlines, which would forge lines of a preview.
    if given.chars().any(char::is_control) {
        return Err("has a control character in it");
    }
    let outside = "leads out of the working directory; use a path relative to it";
    let relative = match given.strip_prefix('/') {
        Some(_) => roots.iter().find_map(|root| strip_root(given, root)).ok_or(outside)?,
        None if given.starts_with('\\') => return Err(outside),
        None => given,
    };
    let mut parts = Vec::new();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or(outside)?;
            }
            name if name.len() > MAX_NAME => return Err("has a name longer than 255 bytes in it"),
            name => parts.push(name),
        }
    }
    Ok(parts)
}

fn strip_root<'a>(given: &'a str, root: &str) -> Option<&'a str> {
    let rest = given.strip_prefix(root.trim_end_matches('/'))?;
    // Without this `/ws-evil` would lie beneath `/ws`.
    if rest.is_empty() { Some(".") } else { rest.strip_prefix('/') }
}

/// The start of what was given, with control characters escaped: it is repeated in messages.
fn escaped_start(given: &str) -> String {
    let mut text = String::new();
    for c in given.chars().take(128) {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}
