//! The editor that the user has chosen.

use std::{path::Path, process::Command};

use kontekst_core::Environment;

/// The editor of somebody who has not chosen one. POSIX requires it.
const DEFAULT: &str = "vi";

/// A command line that opens a file, from `$VISUAL`, `$EDITOR`, or else vi.
pub(super) struct TextEditor {
    chosen: String,
}

impl TextEditor {
    pub(super) fn new(environment: &Environment) -> Self {
        let chosen = ["VISUAL", "EDITOR"].into_iter().find_map(|name| environment.non_empty(name)?.to_str());
        Self { chosen: chosen.unwrap_or(DEFAULT).trim().to_owned() }
    }

    /// Returns the command that edits a file. It ends with status 127 if there is no such editor.
    pub(super) fn command(&self, file: &Path) -> Command {
        // It may have arguments and quotes, as `code --wait`.
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("{} \"$1\"", self.chosen)).arg("sh").arg(file);
        command
    }
}
