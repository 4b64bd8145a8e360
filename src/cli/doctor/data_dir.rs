//! Checks the data directory: whose it is, who can enter it, and the disk below it.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use kontekst_store::config::{Home, free_space};

use super::finding::Finding;

use crate::cli::units;

const SUBJECT: &str = "data directory";

/// With less free space than this, sessions can soon not be stored any more, in bytes.
const LITTLE_SPACE: u64 = 500_000_000;
/// With less than this, they can hardly be stored now.
const NO_SPACE: u64 = 20_000_000;

pub(super) fn check(home: &Home) -> Vec<Finding> {
    let root = home.root();
    let mut found = match fs::metadata(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return vec![absent(root)],
        Err(error) => {
            return vec![Finding::problem(SUBJECT, format!("{} cannot be read: {error}", root.display()))];
        }
        Ok(_) => {
            let dirs = [root.to_owned(), home.run(), home.agents(), home.skills(), home.sessions()];
            dirs.iter().filter_map(|dir| problem_of(dir)).collect::<Vec<_>>()
        }
    };
    let space = free_space(root).ok().flatten();
    if found.is_empty() {
        let free = space.map_or_else(String::new, |free| format!(", {} free", units::bytes(free)));
        found.push(Finding::ok(SUBJECT, format!("{}, for this user only{free}", root.display())));
    }
    let little =
        |free: u64| format!("only {} are free on the disk of {}", units::bytes(free), root.display());
    let remedy = "free some space; `kontekst sessions prune --older-than 90d` deletes old conversations";
    found.extend(match space {
        Some(free) if free < NO_SPACE => Some(Finding::problem("disk", little(free)).remedy(remedy)),
        Some(free) if free < LITTLE_SPACE => Some(Finding::warning("disk", little(free)).remedy(remedy)),
        _ => None,
    });
    found
}

/// Describes a data directory that is not there yet.
fn absent(root: &Path) -> Finding {
    let parent = root.ancestors().skip(1).find(|dir| dir.exists());
    match parent {
        Some(parent) if is_writable(parent) => {
            let message = format!("{} is not there yet; the first command makes it", root.display());
            Finding::ok(SUBJECT, message)
        }
        _ => Finding::problem(SUBJECT, format!("{} is not there and cannot be made", root.display()))
            .remedy("set KONTEKST_HOME to a directory that you own"),
    }
}

/// Returns what is wrong with a directory. One that is not there is made when it is needed.
fn problem_of(dir: &Path) -> Option<Finding> {
    let meta = match fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            return Some(Finding::problem(SUBJECT, format!("{} cannot be read: {error}", dir.display())));
        }
        Ok(meta) => meta,
    };
    let user = rustix::process::geteuid().as_raw();
    if !meta.is_dir() {
        let message = format!("{} is not a directory", dir.display());
        return Some(Finding::problem(SUBJECT, message).remedy(format!("move '{}' away", dir.display())));
    }
    if meta.uid() != user {
        let message = format!("{} belongs to user {}, not to this user ({user})", dir.display(), meta.uid());
        return Some(
            Finding::problem(SUBJECT, message).remedy("set KONTEKST_HOME to a directory that you own"),
        );
    }
    if meta.mode() & 0o077 != 0 {
        let message = format!("{} is open to other users (mode {:03o})", dir.display(), meta.mode() & 0o777);
        return Some(Finding::warning(SUBJECT, message).remedy(format!("chmod 700 '{}'", dir.display())));
    }
    (!is_writable(dir)).then(|| {
        Finding::problem(SUBJECT, format!("{} cannot be written", dir.display()))
            .remedy(format!("chmod 700 '{}', if its file system is writable", dir.display()))
    })
}

fn is_writable(dir: &Path) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}
