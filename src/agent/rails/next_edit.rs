//! Chooses the texts that an edit can replace, for a model whose edits fail: it copies from memory, and cannot copy wrongly
//! where it has to choose.

use super::EDIT_FILE;
use crate::provider::NarrowedCall;

/// A larger file has too many texts for a choice, in bytes.
pub(in crate::agent) const MAX_FILE: u64 = 3000;
/// The maximum number of texts.
const MAX_TEXTS: usize = 100;
/// The maximum number of lines before a line that also stands elsewhere which are added to tell it apart.
const MAX_BEFORE: usize = 3;

/// Returns the call that edits this file, with the texts that stand in it once: its lines, and those that stand in it
/// several times together with the lines before them. `None` if there is no such text, or if there are too many.
pub(super) fn next_edit(path: &str, content: &str) -> Option<NarrowedCall> {
    let content = content.replace("\r\n", "\n");
    let lines: Vec<&str> = content.lines().collect();
    let texts: Vec<String> = (0..lines.len())
        .filter(|&at| !lines[at].trim().is_empty())
        .filter_map(|at| {
            let starts = (at.saturating_sub(MAX_BEFORE)..=at).rev();
            let mut texts = starts.map(|start| lines[start..=at].join("\n"));
            texts.find(|text| content.matches(text.as_str()).count() == 1)
        })
        .collect();
    let values = vec![("path".to_owned(), vec![path.to_owned()]), ("old_str".to_owned(), texts)];
    let count = values[1].1.len();
    (1..=MAX_TEXTS).contains(&count).then(|| NarrowedCall { tool: EDIT_FILE.to_owned(), values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_stands_in_the_file_once() {
        let texts = |content: &str| Some(next_edit("a", content)?.values.remove(1).1);
        let ini = "[server]\nt = 30\n\n[client]\nt = 30\n";
        assert_eq!(
            texts(ini).unwrap(),
            ["[server]", "[server]\nt = 30", "[client]", "[client]\nt = 30"].map(str::to_owned)
        );
        // The first line is a part of the second.
        assert_eq!(texts("b\r\na b\r\n").unwrap(), ["a b"].map(str::to_owned));
        assert_eq!(texts("\n \n"), None);
        let long: String = (0..200).map(|n| format!("line {n};\n")).collect();
        assert_eq!(texts(&long), None);
    }
}
