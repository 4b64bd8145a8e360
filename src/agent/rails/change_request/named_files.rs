//! Tells if a prompt names each file that it is about.

use super::{
    asked_commands::RUN,
    executable_files::makes_executable,
    last_paragraph,
    requested_files::without_quotations,
    sentences,
    words::{EXPLAIN, Word, clauses, has_word, is_file_name},
};

/// The words of a request that may mean all places of a text, or files without their names, in lower case. "Replace" and
/// "rename" do without more words.
const ALL: [&str; 26] = [
    "all",
    "any",
    "anywhere",
    "both",
    "each",
    "every",
    "everything",
    "everywhere",
    "globally",
    "instances",
    "occurrences",
    "rename",
    "renamed",
    "replace",
    "throughout",
    "uses",
    "wherever",
    "whole",
    "alle",
    "allen",
    "beide",
    "ersetze",
    "jede",
    "jedes",
    "überall",
    "umbenennen",
];

/// Returns true if the request may mean all places of a text, or files without their names.
pub(in crate::agent::rails) fn may_mean_all(request: &str) -> bool {
    has_word(request, &ALL)
}

/// Returns true if each clause of the instruction names a file and none may mean more files than it names, as "fix the callers"
/// and "everywhere" do.
pub(in crate::agent::rails) fn names_all_files(prompt: &str) -> bool {
    let instruction = last_paragraph(prompt);
    !may_mean_all(instruction)
        && sentences(instruction).into_iter().filter(|sentence| !sentence.is_empty()).all(names_files)
}

/// Returns true if a word of the request is the name of this file, with its directory and extension or without.
pub(in crate::agent::rails) fn mentions_file(request: &str, path: &str) -> bool {
    let name = file_name(path).to_lowercase();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(&name);
    Word::all(request).iter().any(|word| [&*name, stem].contains(&file_name(&word.lower)))
}

/// Returns the last part of a path.
pub(in crate::agent::rails) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn names_files(sentence: &str) -> bool {
    let words = Word::all(&without_quotations(sentence));
    clauses(&words).into_iter().all(|clause| {
        // "Please" and "then" are clauses by this rule.
        clause.len() == 1
            || clause[0].lower == "commit"
            || RUN.contains(&&*clause[0].lower)
            || EXPLAIN.contains(&&*clause[0].lower)
            || clause.iter().any(|word| is_file_name(&word.text))
            || (clause[0].lower == "make" && makes_executable(&clause[1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_name_all_files_are_known() {
        for prompt in [
            "Set the port in a.toml to 80",
            "Create a script hi.sh that prints hello, and make it executable",
            "set version in a.toml to 2, and add the line \"see a, and b\" to NEWS.md.",
            "Add a line to a.txt. Then make run.sh executable.",
            "Please set the port in a.toml and b.toml to 80",
            "Set the port in a.toml to 80, run the tests, commit it, and tell me if they pass",
        ] {
            assert!(names_all_files(prompt), "{prompt}");
        }
    }

    #[test]
    fn a_file_is_known_by_its_name() {
        let is_mentioned = |request: &str| mentions_file(request, "src/greet.py");
        for request in
            ["fix greet.py", "see `Greet.py`.", "use greet in a.py", "lib/greet.py", "import greet,"]
        {
            assert!(is_mentioned(request), "{request}");
        }
        assert!(!is_mentioned("greet_all in regreet.py"));
        assert!(mentions_file("add x to .env", "a/.env"));
    }

    #[test]
    fn requests_that_may_mean_other_files_are_known() {
        for prompt in [
            "Create hi.sh and update the callers",
            "Change f in a.py to take two numbers. Adapt what calls it.",
            "Change f in a.py everywhere",
            "Add f to a.py, and use it in the program",
            "Rename f in a.py to g",
        ] {
            assert!(!names_all_files(prompt), "{prompt}");
        }
    }
}
