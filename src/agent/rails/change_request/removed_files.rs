//! Reads from a prompt which files are to be gone when the run ends: deleted, moved or renamed.
//!
//! A run that ends while such a file is still there fails, so a clause that could be meant in another way names none: in
//! "remove a.txt from the list" the file stays.

use super::{
    orders,
    requested_files::{FileAim, RequestedFile, without_quotations},
    words::{Word, is_boundary, is_file_name},
};

const DELETE: &[&str] = &["delete", "remove"];

const MOVE: &[&str] = &["move", "rename"];

/// Words that may stand between the verb and the name of the file.
const BEFORE_NAME: &[&str] = &["the", "file", "files", "both"];

/// Words that may stand behind the last name.
const AFTER_NAME: &[&str] = &["please", "now", "completely", "then", "file", "files"];

/// Returns the files that the prompt asks to delete, to move or to rename, in its order.
pub(super) fn removed_files(prompt: &str) -> Vec<RequestedFile> {
    let mut files = Vec::new();
    for sentence in orders(prompt) {
        let plain = without_quotations(sentence);
        let words = Word::all(&plain);
        let verbs = (0..words.len()).filter(|&at| is_boundary(&words, at));
        files.extend(verbs.flat_map(|at| files_of(&words[at..], sentence)));
    }
    files
}

/// Returns the files of the clause that begins with a verb. Its end is that of the sentence, or of the words of the clause.
fn files_of(clause: &[Word], sentence: &str) -> Vec<RequestedFile> {
    let (verb, rest) = (&clause[0], &clause[1..]);
    let before = rest.iter().take_while(|word| BEFORE_NAME.contains(&&*word.lower)).count();
    let listed = rest[before..].iter().take_while(|word| is_file_name(&word.text) || word.lower == "and");
    let mut names: Vec<&Word> = listed.collect();
    while names.last().is_some_and(|word| word.lower == "and") {
        names.pop();
    }
    let after = &rest[before + names.len()..];
    names.retain(|word| word.lower != "and");
    let Some(last) = names.last() else { return Vec::new() };
    let is_meant = match &*verb.lower {
        verb if DELETE.contains(&verb) => {
            let ends = last.ends_clause || after.first().is_none_or(|word| word.lower == "and");
            ends || after.iter().all(|word| AFTER_NAME.contains(&&*word.lower))
        }
        verb if MOVE.contains(&verb) => {
            names.len() == 1 && after.first().is_some_and(|word| ["to", "into"].contains(&&*word.lower))
        }
        _ => false,
    };
    if !is_meant {
        return Vec::new();
    }
    let file = |word: &Word| RequestedFile::new(word, FileAim::Gone, &sentence[verb.at..]);
    names.into_iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prompt: &str) -> String {
        removed_files(prompt).iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn files_that_are_to_be_gone_are_read() {
        for (prompt, expected) in [
            ("Delete the file hello.py", "hello.py"),
            ("delete hello.py", "hello.py"),
            ("please remove `src/old.rs` and tests/old.rs.", "src/old.rs tests/old.rs"),
            ("Remove both files a.txt and b.txt, and add a line to c.md.", "a.txt b.txt"),
            ("delete a.txt please", "a.txt"),
            ("Delete old.txt and set the port in a.toml to 80", "old.txt"),
            ("Rename the file a.py to b.py", "a.py"),
            ("move notes.txt to docs/notes.txt, then list docs", "notes.txt"),
            ("Fix the typo in a.md and delete b.md.", "b.md"),
            ("I want you to delete a.log.", "a.log"),
        ] {
            assert_eq!(read(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn files_that_stay_are_left_alone() {
        for prompt in [
            "",
            "How do I delete hello.py?",
            "Explain how to remove a.txt",
            "Remove a.txt from the list in b.md",
            "Remove the function f from a.py",
            "Delete the first line of a.txt",
            "Delete a.txt in the list",
            "Delete a.txt if it is empty",
            "Do not edit anything; delete a.txt in your mind",
            "Delete a.txt or b.txt",
            "Rename foo to bar in a.py",
            "Move the function f from a.py to b.py",
            "Write \"delete the file a.txt\" to b.txt",
            "rename a.py and b.py",
            "Create a script that can delete a.txt",
        ] {
            assert_eq!(read(prompt), "", "{prompt}");
        }
    }
}
