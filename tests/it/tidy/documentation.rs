//! Documentation begins with a sentence.

use super::{assert_none, files};

/// The first words of clauses that are no sentences.
const CLAUSES: &[&str] = &["What", "Whether", "Where", "Who", "How", "When", "Why", "Which"];

#[test]
fn documentation_begins_with_a_sentence() {
    let files = files();
    let found: Vec<_> = files
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(|file| clauses(&file.text).into_iter().map(|line| format!("{}:{line}", file.path)))
        .collect();
    assert_none("documentation that begins with a clause", &found);
}

/// Returns the numbers of the lines where documentation begins with a clause.
fn clauses(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_documentation = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let is_clause = |at: &usize| {
        let begins = is_documentation(lines[*at]) && (*at == 0 || !is_documentation(lines[*at - 1]));
        // The help of an argument is no sentence.
        let is_help = lines.get(*at + 1).is_some_and(|next| next.starts_with("#[arg"));
        let word = lines[*at].split(' ').nth(1).unwrap_or_default();
        begins && !is_help && CLAUSES.contains(&word)
    };
    (0..lines.len()).filter(is_clause).map(|at| at + 1).collect()
}

#[test]
fn clauses_are_found() {
    let text =
        "//! Why not.\n\n/// A part.\n/// What follows is no beginning.\nfn a() {\n    /// Where it is.\n";
    assert_eq!(clauses(text), [1, 6]);
}
