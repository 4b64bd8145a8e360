//! Compares rules by how much they name.

use super::Decision;

/// Says how much a rule names. Of several rules in one file, the one with the greatest weight decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weight {
    pub(super) class: Class,
    /// The number of words of a command, of parts of a host name, or of directories that a path begins with.
    pub(super) length: usize,
    /// The depth of the directory of its section.
    pub(super) dir: usize,
    pub(super) names_tool: bool,
    pub(super) decision: Decision,
}

/// The kind of target that a rule has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// None: it is about all calls of the tool.
    Tool,
    Pattern,
    /// One file or one host.
    Exact,
}
