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
        .flat_map(|file| clauses(&file.text).map(|line| format!("{}:{line}", file.path)))
        .collect();
    assert_none("documentation that begins with a clause", &found);
}

/// Returns the numbers of the lines where documentation begins with a clause.
fn clauses(text: &str) -> impl Iterator<Item = usize> {
    let lines = || text.lines().map(str::trim_start);
    let befores = std::iter::once("").chain(lines());
    let afters = lines().skip(1).chain([""]);
    let begins = |((before, line), after): ((&str, &str), &str)| {
        let first = documentation(line)?.split(' ').next()?;
        // The help of an argument is no sentence.
        (documentation(before).is_none() && CLAUSES.contains(&first) && !after.starts_with("#[arg"))
            .then_some(())
    };
    befores
        .zip(lines())
        .zip(afters)
        .zip(1..)
        .filter_map(move |(lines, number)| begins(lines).map(|()| number))
}

fn documentation(line: &str) -> Option<&str> {
    line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "))
}

#[test]
fn clauses_are_found() {
    let text =
        "//! Why not.\n\n/// A part.\n/// What follows is no beginning.\nfn a() {\n    /// Where it is.\n";
    assert_eq!(clauses(text).collect::<Vec<_>>(), [1, 6]);
}
