//! The tools that the model was trained to call.

use serde_json::Value;

/// Writes a whole file. Only [`crate::plan`] calls it.
pub(crate) const WRITE: &str = "write_file";
/// Replaces a text in a file. Only [`crate::plan`] calls it.
pub(crate) const EDIT: &str = "edit_file";

/// The tools that the model calls itself, and their arguments that are copied from the request. Other arguments are free.
const READING: [(&str, &[(&str, Copied)]); 3] = [
    (
        "read_file",
        &[("path", Copied::Path), ("start_line", Copied::FirstLine), ("end_line", Copied::LastLine)],
    ),
    ("list_files", &[("pattern", Copied::Pattern)]),
    ("web_fetch", &[("url", Copied::Url)]),
];

/// A tool that may be called.
pub struct Tool<'a> {
    pub name: &'a str,
    /// A JSON Schema of type `object`.
    pub parameters: &'a Value,
    /// It is the program's: its `write_file` fails for an argument `create_only` if the file exists.
    pub own: bool,
}

/// The kind of an argument that is copied from the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// The path of a file: one of the request, or a directory and a file of it.
    Path,
    /// The address of a page. The request need not have its scheme.
    Url,
    /// A glob pattern, whose directory is one of the request.
    Pattern,
    /// The number of the first line of a range.
    FirstLine,
    /// The number of the last line of a range.
    LastLine,
}

impl Tool<'_> {
    /// The arguments that are copied from the request, if the model may call the tool itself.
    pub(crate) fn copied(&self) -> Option<&'static [(&'static str, Copied)]> {
        READING.iter().find(|(name, _)| *name == self.name).map(|(_, arguments)| *arguments)
    }

    /// Returns true if the tool has all of these arguments.
    pub(crate) fn takes(&self, arguments: &[&str]) -> bool {
        arguments.iter().all(|name| self.parameters["properties"].get(name).is_some())
    }
}
