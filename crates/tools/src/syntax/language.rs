//! Parses source code with the grammars of tree-sitter.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// The maximum size of a source text that is parsed, in bytes. Hostile text takes up to 200 times its size in memory.
const MAX_BYTES: usize = 256 << 10;
/// The maximum time for one text. Valid code of the maximum size takes about 100 ms. In this time, the most that any
/// pattern of brackets and operators took was 100 MB of memory.
const MAX_TIME: Duration = Duration::from_millis(250);

/// A programming language whose grammar is in the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Bash,
    C,
    Go,
    Java,
    JavaScript,
    Python,
    Rust,
    Tsx,
    /// The grammar is that of [`Language::Tsx`], which knows all of TypeScript except `<Type>value`. The grammar without
    /// JSX would take 1.4 MB more.
    TypeScript,
}

impl Language {
    /// Returns the language that the extension of a file name in lower case says.
    pub(super) fn of_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "bash" | "sh" => Self::Bash,
            "c" | "h" => Self::C,
            "go" => Self::Go,
            "java" => Self::Java,
            "cjs" | "js" | "jsx" | "mjs" => Self::JavaScript,
            "py" | "pyi" => Self::Python,
            "rs" => Self::Rust,
            "tsx" => Self::Tsx,
            "cts" | "mts" | "ts" => Self::TypeScript,
            _ => return None,
        })
    }

    /// Returns the language that a name in lower case says, as it stands behind the fence of a code block.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "golang" => Self::Go,
            "javascript" | "node" => Self::JavaScript,
            "python" | "python3" => Self::Python,
            "rust" => Self::Rust,
            "shell" | "zsh" => Self::Bash,
            "typescript" => Self::TypeScript,
            extension => return Self::of_extension(extension),
        })
    }

    /// Parses `text`, in about 1 ms for each 2 kB. Every text gives a tree; the places that the grammar does not allow are
    /// error nodes in it. The tree can be as deep as the text is long, so walk it with a `TreeCursor` and not by
    /// recursion; `Node::child_by_field_name` and the siblings of a node are recursive inside.
    ///
    /// Returns `None` if the text is too large, or takes too long.
    pub(crate) fn tree(self, text: &str) -> Option<Tree> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let mut parser = Parser::new();
        parser.set_language(&self.grammar()).ok()?;
        let begin = Instant::now();
        let mut progress = |_: &ParseState| match begin.elapsed() < MAX_TIME {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        parser.parse_with_options(
            &mut |start, _| text.as_bytes().get(start..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut progress)),
        )
    }

    pub(super) fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Bash => tree_sitter_bash::LANGUAGE,
            Self::C => tree_sitter_c::LANGUAGE,
            Self::Go => tree_sitter_go::LANGUAGE,
            Self::Java => tree_sitter_java::LANGUAGE,
            Self::JavaScript => tree_sitter_javascript::LANGUAGE,
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::Rust => tree_sitter_rust::LANGUAGE,
            Self::Tsx | Self::TypeScript => tree_sitter_typescript::LANGUAGE_TSX,
        }
        .into()
    }
}
