//! Parses source code with the grammars of tree-sitter, and tells the parts of code that is shown.

mod highlight;
mod language;

pub use self::highlight::{CodePart, Highlighter};
pub(crate) use self::language::Language;

#[cfg(test)]
mod tests;
