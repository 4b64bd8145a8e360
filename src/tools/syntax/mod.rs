//! Parses source code with the grammars of tree-sitter, and tells the parts of code that is shown.

mod highlight;
mod language;

pub(crate) use self::{
    highlight::{CodePart, Highlighter},
    language::Language,
};

#[cfg(test)]
mod tests;
