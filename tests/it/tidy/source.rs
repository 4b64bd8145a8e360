//! A reading of Rust source: what is code, what is only for tests, and which brackets belong together.

use std::ops::Range;

use tree_sitter::{Node, Parser};

/// The attribute of an item that is compiled for tests only.
const TEST_ONLY: &str = "#[cfg(test)]";

/// The places in a text that are no code, and those that are compiled for tests only.
#[derive(Default)]
struct Places {
    comments_and_literals: Vec<Range<usize>>,
    tests: Vec<Range<usize>>,
}

impl Places {
    fn of(text: &str) -> Self {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_rust::LANGUAGE.into()).unwrap();
        let mut places = Self::default();
        places.add(text, parser.parse(text, None).unwrap().root_node());
        places
    }

    fn add(&mut self, text: &str, node: Node<'_>) {
        let place = node.byte_range();
        match node.kind() {
            "line_comment" | "block_comment" => self.comments_and_literals.push(place),
            // A literal keeps its ends, so that it still is a value there.
            "string_literal" | "raw_string_literal" | "char_literal" => {
                self.comments_and_literals.push(place.start + 1..place.end - 1);
            }
            "attribute_item" if &text[place.clone()] == TEST_ONLY => {
                let siblings = std::iter::successors(node.next_named_sibling(), Node::next_named_sibling);
                let mut items =
                    siblings.skip_while(|node| node.kind() == "attribute_item" || node.is_extra());
                let end = items.next().map_or(text.len(), |item| item.end_byte());
                if self.tests.last().is_none_or(|last| last.end <= place.start) {
                    self.tests.push(place.start..end);
                }
            }
            _ => node.children(&mut node.walk()).for_each(|child| self.add(text, child)),
        }
    }
}

/// Returns `text` with spaces at these places. Line breaks stay, so that a position is still in the same line.
fn without(text: &str, places: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for byte in places.iter().cloned().flatten() {
        if bytes[byte] != b'\n' {
            bytes[byte] = b' ';
        }
    }
    String::from_utf8(bytes).expect("only whole characters are replaced")
}

/// Returns `text` with comments and the contents of literals replaced by spaces.
pub(super) fn code(text: &str) -> String {
    without(text, &Places::of(text).comments_and_literals)
}

/// Returns [`code`] with everything that is compiled for tests only replaced by spaces.
pub(super) fn code_without_tests(text: &str) -> String {
    let Places { comments_and_literals, tests } = Places::of(text);
    without(text, &[comments_and_literals, tests].concat())
}

/// Returns [`code`] with everything but the items that are compiled for tests only replaced by spaces.
pub(super) fn test_code(text: &str) -> String {
    let Places { mut comments_and_literals, tests } = Places::of(text);
    let mut end = 0;
    for test in tests {
        comments_and_literals.push(end..test.start);
        end = test.end;
    }
    comments_and_literals.push(end..text.len());
    without(text, &comments_and_literals)
}

/// Returns the number of lines of a file, comments included, without what is compiled for tests only.
pub(super) fn lines_without_tests(text: &str) -> usize {
    let tests = Places::of(text).tests;
    let lines = |test: Range<usize>| text[test].matches('\n').count() + 1;
    text.lines().count() - tests.into_iter().map(lines).sum::<usize>()
}

/// Returns the text from the opening bracket at the start of `code` to its closing bracket.
pub(super) fn block(code: &str) -> &str {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &code[..at + c.len_utf8()];
        }
    }
    code
}

/// Returns true for a Rust file of the program: of the crate at the top or of one in `crates/`.
pub(super) fn is_product(path: &str) -> bool {
    let in_crate = |rest: &str| !rest.starts_with("starter/training/") && rest.contains("/src/");
    path.ends_with(".rs") && (path.starts_with("src/") || path.strip_prefix("crates/").is_some_and(in_crate))
}

/// Returns true for a file whose whole content is for tests.
pub(super) fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/")
        || path.contains("/tests/")
        || path.contains("_tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}

/// Returns the line, counted from 1, of a position in `text`.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[test]
fn comments_literals_and_tests_are_no_code() {
    let text = "let a = \"x // y\"; // z\nlet b: &'static str = r#\"\"q\" {\"#; let c = '{'; let d = '\\'';\n\
                #[cfg(test)]\nmod tests {\n    fn f() { }\n}\nfn g() {}\n";
    assert_eq!(
        code(text).lines().take(2).map(str::trim_end).collect::<Vec<_>>(),
        ["let a = \"      \";", "let b: &'static str = r        #; let c = ' '; let d = '  ';"]
    );
    let production = code_without_tests(text);
    assert!(production.contains("fn g() {}") && !production.contains("fn f"), "{production}");
    assert_eq!(production.lines().count(), text.lines().count());
}
