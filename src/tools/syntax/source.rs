//! Finds the first error in source code.

use tree_sitter::{Node, Tree, TreeCursor};

use super::{Language, Syntax, SyntaxError, indentation};

/// The beginnings of a value, after which `<` opens the type of a type assertion and compares nothing.
const BEFORE_VALUE: &[char] = &['=', '(', '[', '{', ',', ':', ';', '?', '&', '|', '!', '>', '}'];

/// Parses `text` as source code.
pub(super) fn syntax(language: Language, text: &str) -> Syntax {
    let Some(tree) = language.tree(text) else { return Syntax::Unknown };
    let (offset, problem) = match tree.root_node().has_error() {
        true if language == Language::TypeScript && may_assert_type(text) => return Syntax::Unknown,
        true => first_error(&tree),
        false if language == Language::Python => match indentation::first_error(&tree, text) {
            Some((offset, problem)) => (offset, problem.to_owned()),
            None => return Syntax::Valid,
        },
        false => return Syntax::Valid,
    };
    let (before, after) = text.split_at(text.floor_char_boundary(offset));
    let start_of_line = before.rsplit('\n').next().unwrap_or_default();
    let rest_of_line = after.lines().next().unwrap_or_default();
    let place = (before.matches('\n').count() + 1, start_of_line.chars().count() + 1);
    let line = format!("{problem}: {}{rest_of_line}", start_of_line.trim_start());
    let error = SyntaxError::new(language.name(), place, line.trim_end_matches(": "));
    Syntax::Error(SyntaxError { is_certain: language.grammar_is_complete(), ..error })
}

/// Returns the offset of the first error in a tree that has one, and its description.
fn first_error(tree: &Tree) -> (usize, String) {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_missing() {
            return (node.start_byte(), format!("`{}` is missing", node.kind()));
        }
        if node.is_error() || !goto_child_with_error(&mut cursor) {
            return unclosed_bracket(&mut cursor).map_or_else(
                || (node.start_byte(), "this cannot be parsed".to_owned()),
                |bracket| (bracket.start_byte(), format!("`{}` is not closed", bracket.kind())),
            );
        }
    }
}

/// Moves to the first child that has an error. Stays where it is and returns false if there is none.
fn goto_child_with_error(cursor: &mut TreeCursor<'_>) -> bool {
    let mut is_child = cursor.goto_first_child();
    if !is_child {
        return false;
    }
    while is_child {
        if cursor.node().has_error() {
            return true;
        }
        is_child = cursor.goto_next_sibling();
    }
    cursor.goto_parent();
    false
}

/// Returns the last bracket among the children of an error that no other child closes.
fn unclosed_bracket<'tree>(error: &mut TreeCursor<'tree>) -> Option<Node<'tree>> {
    let mut open = Vec::new();
    let mut is_child = error.goto_first_child();
    while is_child {
        match error.node().kind() {
            "(" | "[" | "{" => open.push(error.node()),
            ")" | "]" | "}" => _ = open.pop(),
            _ => {}
        }
        is_child = error.goto_next_sibling();
    }
    open.pop()
}

/// Returns true if a text in TypeScript may have a type assertion in the form `<Type>value`.
fn may_assert_type(text: &str) -> bool {
    text.match_indices('<').any(|(at, _)| {
        let before = text[..at].trim_end();
        before.ends_with(BEFORE_VALUE) || before.ends_with("return")
    })
}
