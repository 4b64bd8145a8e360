//! Walks the tree by directory handles, never through a link.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};

use super::{gitignore::IgnoreRules, pattern::Pattern};
use crate::{
    core::Cancel,
    tools::{FileError, Workspace},
};

/// Most directory entries that one call looks at.
const MAX_ENTRIES: usize = 200_000;
/// Longest time for one call.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How deep it goes; each level holds a handle.
const MAX_DEPTH: usize = 64;

/// What was found, sorted.
#[derive(Debug, Default)]
pub struct Listing {
    pub names: Vec<String>,
    /// Whether anything was left out because a `.gitignore` says so.
    pub ignored: bool,
    /// Why there may be more.
    pub truncated: Option<&'static str>,
}

struct Walk<'a> {
    workspace: &'a Workspace,
    pattern: &'a Pattern,
    cancel: &'a Cancel,
    most: usize,
    entries: usize,
    started: Instant,
    listing: Listing,
}

/// Why the walk ends early.
struct Stop;

struct Entry {
    name: String,
    is_dir: bool,
    is_link: bool,
    is_file: bool,
}

/// Lists at most `most` names.
///
/// # Errors
///
/// `cancelled`, or why the directory that the pattern names cannot be listed.
pub fn list(
    workspace: &Workspace,
    pattern: &Pattern,
    most: usize,
    cancel: &Cancel,
) -> Result<Listing, String> {
    let mut walk = Walk {
        workspace,
        pattern,
        cancel,
        most,
        entries: 0,
        started: Instant::now(),
        listing: Listing::default(),
    };
    let base = pattern.base();
    let dir = match workspace.open_dir(base) {
        Ok(dir) => dir,
        // A directory that is not there has no files: not an error, an empty answer.
        Err(FileError::Missing(_)) => return Ok(walk.listing),
        Err(error) => return Err(error.message()),
    };
    let mut rules = IgnoreRules::none();
    let mut above = String::new();
    for part in base.split('/').filter(|part| !part.is_empty()) {
        rules = rules.with_file_in(&above, workspace);
        if !above.is_empty() {
            above.push('/');
        }
        above.push_str(part);
    }
    let ended = walk.directory(&dir, base, 0, &rules);
    if cancel.is_cancelled() {
        return Err("cancelled".to_owned());
    }
    debug_assert!(ended.is_ok() || walk.listing.truncated.is_some());
    Ok(walk.listing)
}

impl Walk<'_> {
    fn directory(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        level: usize,
        rules: &IgnoreRules,
    ) -> Result<(), Stop> {
        let rules = rules.with_file_in(path, self.workspace);
        for entry in self.entries(dir)? {
            let path = if path.is_empty() { entry.name.clone() } else { format!("{path}/{}", entry.name) };
            let matches = self.pattern.matches(&path);
            if matches && self.is_wanted(&path, &entry) {
                if !self.pattern.ends_in_literal && rules.is_ignored(&path, entry.is_dir) {
                    self.listing.ignored = true;
                } else {
                    self.add(&path)?;
                }
            }
            if entry.is_dir && entry.name != ".git" && self.pattern.can_match_at(level + 1) {
                if rules.is_ignored(&path, true) {
                    self.listing.ignored = true;
                } else if level + 1 >= MAX_DEPTH {
                    self.listing.truncated = Some("some directories are too deep");
                } else {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    // One that cannot be opened (no right to, or gone) has nothing to show.
                    if let Ok(inner) = fs::openat(dir, entry.name.as_str(), flags, Mode::empty()) {
                        self.directory(&inner, &path, level + 1, &rules)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The entries of a directory in the order of their paths.
    fn entries(&mut self, dir: &OwnedFd) -> Result<Vec<Entry>, Stop> {
        let mut entries = Vec::new();
        let Ok(listing) = Dir::read_from(dir) else { return Ok(entries) };
        for entry in listing.flatten() {
            if self.cancel.is_cancelled() {
                return Err(Stop);
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.listing.truncated = Some("too many entries to look at all");
                return Err(Stop);
            }
            if self.started.elapsed() > TIME_LIMIT {
                self.listing.truncated = Some("it took too long to look at all");
                return Err(Stop);
            }
            // Other names cannot be said in JSON, so no tool could take them.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || name.chars().any(char::is_control) {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            entries.push(Entry {
                name: name.to_owned(),
                is_dir: kind == FileType::Directory,
                is_link: kind == FileType::Symlink,
                is_file: kind == FileType::RegularFile,
            });
        }
        // As if a directory's name ended with its `/`: that is how whole paths sort.
        entries.sort_by_cached_key(|entry| {
            if entry.is_dir { format!("{}/", entry.name) } else { entry.name.clone() }
        });
        Ok(entries)
    }

    fn is_wanted(&self, path: &str, entry: &Entry) -> bool {
        if self.pattern.directories {
            return entry.is_dir;
        }
        entry.is_file || (entry.is_link && self.is_link_to_file(path))
    }

    /// A link is listed if `read_file` would follow it.
    fn is_link_to_file(&self, path: &str) -> bool {
        self.workspace.path(path).is_ok_and(|path| self.workspace.open(&path).is_ok())
    }

    fn add(&mut self, path: &str) -> Result<(), Stop> {
        if self.listing.names.len() == self.most {
            self.listing.truncated = Some("the list is long");
            return Err(Stop);
        }
        let slash = if self.pattern.directories { "/" } else { "" };
        self.listing.names.push(format!("{path}{slash}"));
        Ok(())
    }
}
