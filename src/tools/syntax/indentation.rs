//! Finds the first wrong indentation in Python, which the grammar of tree-sitter does not report: it skips a line that is
//! indented too far, and accepts a function without a body.

use tree_sitter::{Node, Tree};

/// Returns the offset of the first line with a wrong indentation, and what is wrong. `tree` is that of `text`.
///
/// Returns `None` for a text that indents with spaces and with tabs: which lines are equally far in depends on the reader.
pub(super) fn first_error(tree: &Tree, text: &str) -> Option<(usize, &'static str)> {
    let is_indented_with = |c| text.lines().any(|line| line.starts_with(c));
    if is_indented_with(' ') && is_indented_with('\t') {
        return None;
    }
    let mut lines = LogicalLines { blocks: vec![0], ..LogicalLines::default() };
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if is_token(&node) {
            let error = lines.next(&node, text);
            if error.is_some() {
                return error;
            }
        }
        if is_token(&node) || !cursor.goto_first_child() {
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return lines.opens_block.then_some((text.trim_end().len(), NO_BLOCK));
                }
            }
        }
    }
}

const NO_BLOCK: &str = "an indented block is missing";
const TOO_FAR: &str = "this line is indented too far";
const NO_LEVEL: &str = "this line is indented as no line before it";

/// Returns true for a node that is read as one piece. The lines of a string have no indentation that counts.
fn is_token(node: &Node<'_>) -> bool {
    node.child_count() == 0 || node.kind() == "string"
}

/// The lines of a program, where one that goes on in brackets or behind `\` counts as one.
#[derive(Default)]
struct LogicalLines {
    /// The columns at which the open blocks begin.
    blocks: Vec<usize>,
    /// The brackets that are open.
    brackets: usize,
    /// The last token was the colon before a block.
    opens_block: bool,
    /// The line in which the last token, and the last comment, ended.
    last: Option<usize>,
    comment: Option<usize>,
}

impl LogicalLines {
    /// Reads a token, and returns the error if its line has a wrong indentation.
    fn next(&mut self, token: &Node<'_>, text: &str) -> Option<(usize, &'static str)> {
        let (start, end) = (token.start_position(), token.end_position());
        if token.start_byte() == token.end_byte() || token.kind() == "line_continuation" {
            return None;
        }
        if token.kind() == "comment" {
            self.comment = Some(end.row);
            return None;
        }
        let begins_line = self.brackets == 0 && self.last != Some(start.row) && !self.continues(token, text);
        let error = if begins_line { self.begin(start.column) } else { None };
        match token.kind() {
            "(" | "[" | "{" => self.brackets += 1,
            ")" | "]" | "}" => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.opens_block = token.kind() == ":" && self.brackets == 0;
        self.last = Some(end.row);
        error.map(|error| (token.start_byte(), error))
    }

    /// Returns true if the line before that of `token` ends with `\`, and not in a comment.
    fn continues(&self, token: &Node<'_>, text: &str) -> bool {
        let Some(row) = token.start_position().row.checked_sub(1) else { return false };
        let before = &text[..token.start_byte() - token.start_position().column];
        before.trim_end_matches(['\n', '\r']).ends_with('\\') && self.comment != Some(row)
    }

    /// Begins a line at a column.
    fn begin(&mut self, column: usize) -> Option<&'static str> {
        let block = self.blocks.last().copied().unwrap_or_default();
        if column > block {
            self.blocks.push(column);
            return (!self.opens_block).then_some(TOO_FAR);
        }
        if self.opens_block {
            return Some(NO_BLOCK);
        }
        while self.blocks.last().is_some_and(|&block| block > column) {
            self.blocks.pop();
        }
        (self.blocks.last() != Some(&column)).then_some(NO_LEVEL)
    }
}
