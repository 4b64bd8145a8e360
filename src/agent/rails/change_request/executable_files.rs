//! Reads from a prompt which files are to be executable when the run ends.
//!
//! A run that ends while such a file is not fails, so a clause that could be meant in another way names none: in "make the
//! build of app.py executable" no file is named.

use super::{
    orders,
    requested_files::{FileAim, RequestedFile, without_quotations},
    words::{CREATE, Word, clauses, is_file_name},
};

/// Words that may stand between "make" and the name of a file.
const BEFORE_NAME: &[&str] = &["the", "file", "files", "script", "scripts", "both", "and"];

/// Words that stand for the file that was named last, if it is only one.
const PRONOUNS: &[&str] = &["it", "this"];

/// Returns the files that the prompt asks to make executable, in its order.
pub(super) fn executable_files(prompt: &str) -> Vec<RequestedFile> {
    let mut files = Vec::new();
    // The only file of the last clause that names any.
    let mut only: Option<RequestedFile> = None;
    for sentence in orders(prompt) {
        let plain = without_quotations(sentence);
        let words = Word::all(&plain);
        for clause in clauses(&words) {
            let file = |word: &Word| RequestedFile::new(word, FileAim::Executable, &sentence[clause[0].at..]);
            files.extend(files_of(clause).into_iter().map(file));
            if clause[0].lower == "make" && refers_to_one(&clause[1..]) {
                files.extend(only.clone());
            }
            let names: Vec<&Word> = clause.iter().filter(|word| is_file_name(&word.text)).collect();
            if let Some(first) = names.first() {
                only = (names.len() == 1).then(|| file(first));
            }
        }
    }
    files
}

/// Returns the names in "make a.sh executable", "create an executable script a.sh" and "chmod +x a.sh" that are to be executable.
fn files_of(clause: &[Word]) -> Vec<&Word> {
    let (verb, rest) = (&*clause[0].lower, &clause[1..]);
    let is_name = |word: &&Word| is_file_name(&word.text);
    match verb {
        "make" if makes_executable(rest) => object(rest).iter().filter(is_name).collect(),
        // Punctuation is no part of a word.
        "chmod" if rest.first().is_some_and(|mode| ["x", "a+x", "u+x", "755"].contains(&&*mode.lower)) => {
            let listed = rest[1..].iter().take_while(|word| is_name(word) || word.lower == "and");
            listed.filter(is_name).collect()
        }
        verb if CREATE.contains(&verb) => {
            let name = rest.iter().position(|word| is_name(&word));
            let name = name.filter(|&name| rest[..name].iter().any(|word| word.lower == "executable"));
            name.map(|name| &rest[name]).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true for what follows "make" in "make a.sh executable" and in "make it executable".
pub(super) fn makes_executable(rest: &[Word]) -> bool {
    let object = object(rest).len();
    let follows_object = object > 0 && rest.get(object).is_some_and(|word| word.lower == "executable");
    follows_object || refers_to_one(rest)
}

/// Returns true for what follows "make" in "make it executable".
fn refers_to_one(rest: &[Word]) -> bool {
    rest.len() > 1 && PRONOUNS.contains(&&*rest[0].lower) && rest[1].lower == "executable"
}

/// Returns the words that name files at the beginning.
fn object(rest: &[Word]) -> &[Word] {
    let is_object = |word: &&Word| is_file_name(&word.text) || BEFORE_NAME.contains(&&*word.lower);
    &rest[..rest.iter().take_while(is_object).count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prompt: &str) -> String {
        executable_files(prompt).iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn files_that_are_to_be_executable_are_read() {
        for (prompt, expected) in [
            ("Make run.sh executable", "run.sh"),
            ("make the script `bin/run.sh` executable.", "bin/run.sh"),
            ("make a.sh and b.sh executable", "a.sh b.sh"),
            ("chmod +x deploy.sh", "deploy.sh"),
            ("please chmod 755 ./deploy.sh", "deploy.sh"),
            ("Create run.sh that prints hello, and make it executable.", "run.sh"),
            ("Create a script named run.sh that prints hello. Make it executable.", "run.sh"),
            ("Create an executable script hello.py that prints hello", "hello.py"),
            ("Fix the typo in a.md and make run.sh executable", "run.sh"),
            ("Create an executable script run.sh that reads data.txt", "run.sh"),
            ("make run.sh executable like build.sh", "run.sh"),
        ] {
            assert_eq!(read(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        for prompt in [
            "",
            "How do I make run.sh executable?",
            "Explain why a.sh is not executable",
            "Make the code of run.sh readable",
            "Make it executable",
            "make run.sh executable if it exists",
            "Write \"make run.sh executable\" to a.txt",
            "Create a.txt that says which files are executable",
            "Create a script run.sh that makes b.sh executable",
            "chmod 644 run.sh",
            "Create run.sh that reads data.txt, and make it executable",
            "Do not edit anything; make run.sh executable in your mind",
        ] {
            assert_eq!(read(prompt), "", "{prompt}");
        }
    }
}
