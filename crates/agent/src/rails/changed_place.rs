//! Shows the model what it changed.

use std::fmt::Write as _;

use kontekst_tools::Change;

/// The number of unchanged lines that are shown before and after the changed ones.
const CONTEXT: usize = 2;
/// The maximum number of lines that are shown.
const MAX_LINES: usize = 12;
/// The maximum length of a line that is shown, in bytes.
const MAX_LINE: usize = 120;

/// Returns the changed lines of a file with a few lines around them, in the form of `read_file`. Several places are shown
/// as one that reaches from the first to the last. A place of more than 12 lines is shown without its middle. Of a new file
/// that was written as a whole only the size is told.
pub(crate) fn changed_place(change: &Change, is_whole: bool) -> String {
    if is_whole && change.old.is_none() {
        let lines = change.new.lines().count();
        return format!("{} has {lines} line{} now.", change.path, if lines == 1 { "" } else { "s" });
    }
    let new: Vec<&str> = change.new.lines().collect();
    let old = change.old.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let old: Vec<&str> = old.lines().collect();
    if new.is_empty() {
        return format!("{} is empty now.", change.path);
    }
    let (before, after) = equal_ends(&old, &new);
    let first = before.saturating_sub(CONTEXT).min(new.len() - 1);
    let last = (new.len() - after + CONTEXT).min(new.len());
    let shown = new.get(first..last).unwrap_or_default();
    let mut text = format!("Lines {} to {last} of {} are now:", first + 1, change.path);
    let width = last.to_string().len();
    let skipped = if shown.len() > MAX_LINES { MAX_LINES - 4..shown.len() - 3 } else { 0..0 };
    for (at, line) in shown.iter().enumerate() {
        if skipped.contains(&at) {
            if at == skipped.start {
                text.push_str("\n…");
            }
            continue;
        }
        let end = line.floor_char_boundary(MAX_LINE);
        let cut = if end < line.len() { "…" } else { "" };
        write!(text, "\n{:>width$}: {}{cut}", first + at + 1, &line[..end]).expect("writes to a string");
    }
    text
}

/// Returns the number of lines that two texts have in common at their beginning, and at their end.
fn equal_ends(old: &[&str], new: &[&str]) -> (usize, usize) {
    let before = new.iter().zip(old).take_while(|(new, old)| new == old).count();
    let rest = new.iter().skip(before).rev().zip(old.iter().skip(before).rev());
    (before, rest.take_while(|(new, old)| new == old).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> String {
        changed_place(&Change { path: "f".into(), old: Some(old.into()), new: new.into() }, false)
    }

    #[test]
    fn the_changed_lines_are_shown_with_their_neighbours() {
        let file = "1\n2\n3\n4\n5\n6\n7\n";
        assert_eq!(
            shown(file, &file.replace('4', "four")),
            "Lines 2 to 6 of f are now:\n2: 2\n3: 3\n4: four\n5: 5\n6: 6"
        );
        assert_eq!(shown(file, &file.replace("1\n", "")), "Lines 1 to 2 of f are now:\n1: 2\n2: 3");
        assert_eq!(shown(file, &file.replace("7\n", "")), "Lines 5 to 6 of f are now:\n5: 5\n6: 6");
        assert_eq!(shown("a\n", "a\nb\n"), "Lines 1 to 2 of f are now:\n1: a\n2: b");
        assert_eq!(shown("a\na\n", "a\na\na\n"), "Lines 1 to 3 of f are now:\n1: a\n2: a\n3: a");
        assert_eq!(shown("a\n", ""), "f is empty now.");
        assert_eq!(shown("a", "a\n"), "Lines 1 to 1 of f are now:\n1: a");
    }

    #[test]
    fn a_long_place_is_shown_without_its_middle() {
        let lines = |text: &str| (0..50).map(|n| format!("{text}{n}\n")).collect::<String>();
        let place = shown(&lines("a"), &lines("b"));
        assert_eq!(place.lines().count(), 1 + MAX_LINES);
        assert!(place.contains("\n 8: b7\n…\n48: b47\n"), "{place}");
        let wide = shown("x\n", &"é".repeat(10_000));
        assert!(wide.len() < 200 && wide.ends_with('…'), "{wide}");
    }
}
