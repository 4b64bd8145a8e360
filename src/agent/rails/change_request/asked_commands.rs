//! Reads from a prompt if a command is to be run.
//!
//! A run that ends without one fails, so a clause that could be meant in another way asks for none: in "create a script that
//! builds the app and run the tests in it" nothing is to be run.

use super::{
    MAX_INSTRUCTION, can_be_order, last_paragraph,
    requested_files::{has_condition, without_quotations},
    sentences,
    words::{Word, has_word, is_boundary, is_file_name},
};

pub(super) const RUN: &[&str] = &["run", "rerun", "execute"];

/// Words for what is run, in lower case.
const RUNNABLE: &[&str] = &[
    "test",
    "tests",
    "testsuite",
    "suite",
    "build",
    "linter",
    "linters",
    "cargo",
    "make",
    "npm",
    "pytest",
    "script",
    "benchmark",
    "benchmarks",
    "formatter",
];

/// Words that may stand between the verb and what is run.
const BEFORE_RUNNABLE: &[&str] = &[
    "the",
    "all",
    "our",
    "my",
    "its",
    "unit",
    "integration",
    "whole",
    "full",
    "of",
    "python",
    "python3",
    "sh",
    "bash",
];

/// Programs with which a command line begins.
const PROGRAMS: &[&str] = &["python", "python3", "sh", "bash", "cargo", "npm", "make", "pytest"];

/// Words that may follow "commit".
const AFTER_COMMIT: &[&str] =
    &["it", "this", "that", "them", "the", "all", "everything", "your", "my", "with", "and", "to", "git"];

/// Words after which a clause is about what something else does.
const DESCRIBES: &[&str] = &[
    "that", "which", "who", "how", "can", "script", "workflow", "target", "job", "hook", "function",
    "program", "class", "line", "text", "sentence", "saying", "says", "step", "pipeline",
];

/// The words of commands that find mistakes, in lower case. Their exit status is not 0 if they find one.
const TESTS: &[&str] = &[
    "test",
    "tests",
    "testsuite",
    "suite",
    "pytest",
    "unittest",
    "jest",
    "vitest",
    "tox",
    "ctest",
    "check",
    "checks",
    "cargo",
    "make",
    "build",
    "compile",
    "lint",
    "linter",
    "linters",
    "clippy",
];

/// The purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent::rails) enum CommandAim {
    /// The changes are to be committed, so a command that does not say so is not the one.
    Commit,
    /// It finds mistakes, as tests and builds do.
    Test,
    Other,
}

/// A command that is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent::rails) struct AskedCommand {
    pub(in crate::agent::rails) aim: CommandAim,
    /// The words of the prompt, such as "run the tests", or the command line if the prompt has one.
    pub(in crate::agent::rails) clause: String,
}

/// Returns the commands that the prompt asks to run, in its order.
pub(in crate::agent::rails) fn asked_commands(prompt: &str) -> Vec<AskedCommand> {
    let instruction = last_paragraph(prompt);
    if instruction.len() > MAX_INSTRUCTION {
        return Vec::new();
    }
    let orders = sentences(instruction).into_iter().filter(|sentence| can_be_order(sentence));
    orders.flat_map(commands_of).collect()
}

fn commands_of(sentence: &str) -> Vec<AskedCommand> {
    let words = Word::all(&without_quotations(sentence));
    let end = words.iter().position(|word| DESCRIBES.contains(&&*word.lower)).unwrap_or(words.len());
    let command = |at: usize| {
        let (verb, rest) = (&*words[at].lower, &words[at + 1..]);
        let next = (at + 1..words.len()).find(|&next| is_boundary(&words, next)).unwrap_or(words.len());
        // In "commit it, if the tests pass" the condition begins the next clause.
        if has_condition(&words[..next]) || words[at..].iter().take(next + 1 - at).any(is_condition) {
            return None;
        }
        let clause = &sentence[words[at].at..words.get(next).map_or(sentence.len(), |next| next.at)];
        let clause = clause.trim_end().trim_end_matches(" and").trim_end_matches([',', ';', '.']);
        if is_commit(verb, rest) {
            return Some(AskedCommand { aim: CommandAim::Commit, clause: clause.to_owned() });
        }
        // Punctuation may stand before the verb.
        let line = clause.get(verb.len()..).and_then(command_line);
        let aim = if is_test(clause) { CommandAim::Test } else { CommandAim::Other };
        let runs = RUN.contains(&verb) && (line.is_some() || names_runnable(rest));
        runs.then(|| AskedCommand { aim, clause: line.unwrap_or(clause).to_owned() })
    };
    (0..end).filter(|&at| is_boundary(&words, at)).filter_map(command).collect()
}

fn is_condition(word: &Word) -> bool {
    ["if", "unless", "when", "whenever", "once", "only", "until"].contains(&&*word.lower)
}

/// Returns true for "commit it", "git commit" and "commit" at the end of a clause.
fn is_commit(verb: &str, rest: &[Word]) -> bool {
    match verb {
        "commit" => rest.first().is_none_or(|word| AFTER_COMMIT.contains(&&*word.lower)),
        "git" => rest.first().is_some_and(|word| word.lower == "commit"),
        _ => false,
    }
}

/// Returns the command line of "`make check` in docs" and of "python3 a.py". Very small models run "run python3 a.py" otherwise.
fn command_line(object: &str) -> Option<&str> {
    let object = object.trim();
    if let Some(quoted) = object.strip_prefix('`') {
        return Some(quoted.split_once('`')?.0);
    }
    let program = object.split_whitespace().next()?;
    let is_program = PROGRAMS.contains(&program) || program.starts_with("./");
    is_program.then_some(object)
}

/// Returns true for words about a command, or a command line, that finds mistakes.
pub(in crate::agent::rails) fn is_test(text: &str) -> bool {
    has_word(text, TESTS)
}

/// Returns true for "the tests", "cargo build" and "a.sh".
fn names_runnable(rest: &[Word]) -> bool {
    let before = rest.iter().take_while(|word| BEFORE_RUNNABLE.contains(&&*word.lower)).count();
    rest.get(before).is_some_and(|word| RUNNABLE.contains(&&*word.lower) || is_script(&word.text))
}

fn is_script(word: &str) -> bool {
    let extensions = [".sh", ".py", ".rb", ".pl", ".js"];
    is_file_name(word) && extensions.iter().any(|extension| word.ends_with(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prompt: &str) -> Vec<String> {
        let in_words = |command: AskedCommand| format!("{:?}: {}", command.aim, command.clause);
        asked_commands(prompt).into_iter().map(in_words).collect()
    }

    #[test]
    fn commands_that_are_to_be_run_are_read() {
        for (prompt, expected) in [
            ("Run the tests", &["Test: Run the tests"][..]),
            ("run all unit tests and tell me if they pass.", &["Test: run all unit tests"]),
            ("Please run `make check`.", &["Test: make check"]),
            ("run python3 test_a.py", &["Test: python3 test_a.py"]),
            ("execute ./a.sh", &["Other: ./a.sh"]),
            ("Run python3 count.py, and tell me what it prints", &["Other: python3 count.py"]),
            ("Fix the typo in a.md and commit it.", &["Commit: commit it"]),
            (
                "Set the port in a.toml to 80, run the tests, and commit the change with the message \"port, and more\"",
                &["Test: run the tests", "Commit: commit the change with the message \"port, and more\""],
            ),
            ("Run the tests. Do not change anything.", &["Test: Run the tests"]),
            ("run the tests, and commit it if they pass", &["Test: run the tests"]),
            ("👉run the tests", &["Test: 👉run the tests"]),
            ("Commit.", &["Commit: Commit"]),
            ("git commit the changes", &["Commit: git commit the changes"]),
        ] {
            assert_eq!(read(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn other_requests_ask_for_none() {
        for prompt in [
            "",
            "How do I run the tests?",
            "Explain how to run the tests",
            "Tell me how the tests run",
            "What does commit 1234 change?",
            "Commit 1234 broke it. Find out why.",
            "Create a script that builds the app and run the tests in it",
            "Write a workflow to build the app and run the tests",
            "Add a line saying: build it, run the tests",
            "Run the tests if a.py has changed",
            "Commit it, if the tests pass",
            "If the tests pass, commit it",
            "Commit it only when a.py has changed",
            "Do not run the tests",
            "Set the port to 80, but do not commit it",
            "Set the port to 80, don't commit.",
            "Make the tests pass",
            "Run a search for foo",
            "Write \"run the tests\" to a.txt",
            "Add \"please run the tests\" to README.md",
            "Add a test for the run function",
        ] {
            assert_eq!(read(prompt), Vec::<String>::new(), "{prompt}");
        }
    }
}
