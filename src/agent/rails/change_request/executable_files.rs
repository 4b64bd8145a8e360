//! Reads from a prompt which files are to be executable when the run ends.
//!
//! A run that ends while such a file is not fails, so a clause that could be meant in another way names none: in "make the
//! build of app.py executable" no file is named.

use super::{
    orders,
    requested_files::{FileAim, RequestedFile, without_quotations},
    words::{CREATE, Word, is_boundary, is_file_name},
};

/// Words that may stand between "make" and the name of a file.
const BEFORE_NAME: &[&str] = &["the", "file", "files", "script", "scripts", "both", "and"];

/// Words that stand for the file that was named last.
const PRONOUNS: &[&str] = &["it", "this", "them", "both"];

/// Returns the files that the prompt asks to make executable, in its order.
pub(in crate::agent::rails) fn executable_files(prompt: &str) -> Vec<RequestedFile> {
    let mut files = Vec::new();
    // The names of the last clause that names a file.
    let mut named: Vec<String> = Vec::new();
    for sentence in orders(prompt) {
        let plain = without_quotations(sentence);
        let words = Word::all(&plain);
        let starts_clause = |at: &usize| is_boundary(&words, *at) && !is_file_name(&words[*at].text);
        let starts: Vec<usize> = (0..words.len()).filter(starts_clause).collect();
        for (number, &start) in starts.iter().enumerate() {
            let clause = &words[start..starts.get(number + 1).copied().unwrap_or(words.len())];
            let names: Vec<String> =
                clause.iter().filter(|word| is_file_name(&word.text)).map(|word| word.text.clone()).collect();
            if !names.is_empty() {
                named = names;
            }
            if is_about_executables(clause) {
                files.extend(named.iter().map(|name| file(name, sentence[clause[0].at..].trim_end())));
            }
        }
    }
    files
}

fn file(name: &str, clause: &str) -> RequestedFile {
    RequestedFile {
        path: name.trim_start_matches("./").to_owned(),
        aim: FileAim::Executable,
        clause: clause.to_owned(),
    }
}

/// Returns true for "make a.sh executable", "make it executable", "create an executable script a.sh" and "chmod +x a.sh".
fn is_about_executables(clause: &[Word]) -> bool {
    let (verb, rest) = (&*clause[0].lower, &clause[1..]);
    match verb {
        "make" => makes_executable(rest),
        // Punctuation is no part of a word.
        "chmod" => rest.first().is_some_and(|mode| ["x", "a+x", "u+x", "755"].contains(&&*mode.lower)),
        verb if CREATE.contains(&verb) => {
            let before = rest.iter().take_while(|word| !is_file_name(&word.text));
            before.clone().count() < rest.len() && before.into_iter().any(|word| word.lower == "executable")
        }
        _ => false,
    }
}

/// Returns true for what follows "make" in "make a.sh executable".
pub(super) fn makes_executable(rest: &[Word]) -> bool {
    let is_object = |word: &&Word| {
        is_file_name(&word.text) || [BEFORE_NAME, PRONOUNS].iter().any(|list| list.contains(&&*word.lower))
    };
    let object = rest.iter().take_while(is_object).count();
    object > 0 && rest.get(object).is_some_and(|word| word.lower == "executable")
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
            "Do not edit anything; make run.sh executable in your mind",
        ] {
            assert_eq!(read(prompt), "", "{prompt}");
        }
    }
}
