//! The editor that the user has chosen.

use std::{path::Path, process::Command};

use crate::core::Environment;

/// The editor of somebody who has not chosen one. POSIX requires it.
const DEFAULT: &str = "vi";

/// Returns the command that edits a file, by `$VISUAL`, `$EDITOR`, or else vi.
pub(super) fn command(environment: &Environment, file: &Path) -> Command {
    let chosen = ["VISUAL", "EDITOR"].into_iter().find_map(|name| environment.non_empty(name)?.to_str());
    let chosen = chosen.unwrap_or(DEFAULT).trim();
    // It may have arguments and quotes, as `code --wait`.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{chosen} \"$1\"")).arg("sh").arg(file);
    command
}
