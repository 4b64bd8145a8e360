//! A command line, and what is known about it when it is run.

/// A command line to run.
#[derive(Clone, Copy, Debug)]
pub struct CommandJob<'a> {
    pub line: &'a str,
    /// The time limit.
    pub seconds: u64,
    /// Protected paths that it may make or change, because a person has approved a line that names them.
    pub names: &'a [String],
    /// It was proposed as one that only reads, so it may change nothing.
    pub only_reads: bool,
}
