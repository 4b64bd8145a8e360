//! Names without links, by which rules are compared. Nothing is opened by them.

use std::path::{Path, PathBuf};

/// Returns the path without links, or `None` if it does not exist.
#[expect(
    clippy::disallowed_methods,
    reason = "the name is compared with others, and no file is opened by it"
)]
pub(super) fn existing(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// Returns the path without links. Names at its end that do not exist stay as they are.
pub(super) fn real_path(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|outer| {
        let rest = path.strip_prefix(outer).ok()?;
        existing(outer).map(|real| if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    })
}
