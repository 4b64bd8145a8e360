//! Files in which people write down what their policy should decide, for `kontekst policy test`.

use std::path::{Path, PathBuf};

use kontekst_store::config::{Home, PathError, TomlError, file::read_text};

use super::{
    Decision,
    file::{FileKind, MAX_BYTES, PolicyFile},
    rule::split,
};

/// A call, and what should be decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The call as the file has it, for example `edit_file(src/main.rs)`.
    pub text: String,
    pub tool: String,
    /// The path, the command line or the address.
    pub target: Option<String>,
    pub decision: Decision,
    pub headless: bool,
    /// The working directory of the call. `None` is that of the test.
    pub dir: Option<PathBuf>,
    /// Counts from 1.
    pub line: usize,
}

/// Reads a file that has the form of a policy file, with calls instead of rules.
///
/// # Errors
///
/// [`TomlError`] for any mistake.
pub fn expectations(path: &Path, home: &Home) -> Result<Vec<Expectation>, TomlError> {
    let text = read_text(path, MAX_BYTES)?;
    let file = PolicyFile::read(path, &text, FileKind::Expectations, home)?;
    let mut found = Vec::new();
    for section in &file.sections {
        for entry in &section.entries {
            let (tool, target) =
                split(&entry.text).map_err(|message| file.invalid(entry.offset, &message))?;
            if tool == "*" {
                return Err(file.invalid(entry.offset, "a call has the name of one tool"));
            }
            found.push(Expectation {
                text: entry.text.clone(),
                tool: tool.to_owned(),
                target: target.map(str::to_owned),
                decision: entry.decision,
                headless: section.headless,
                dir: section.dir.as_ref().map(|section| section.path.clone()),
                line: file.line(entry.offset),
            });
        }
    }
    if found.is_empty() {
        return Err(PathError::new(
            path,
            std::io::Error::other("it has no calls in `allow`, `ask` or `deny`"),
        )
        .into());
    }
    Ok(found)
}
