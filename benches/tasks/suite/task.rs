//! One task: its files, its prompt, and what must be true afterwards.

use super::{
    Tree,
    judge::{Change, Expected, Outcome},
};

/// The kinds of tasks, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A misspelled or unwanted word in a file that the prompt names.
    Typo,
    /// One value in a configuration file.
    Setting,
    /// One line is added or removed.
    Line,
    /// A change in a file that the prompt does not name.
    Find,
    /// A name that stands in several files.
    Rename,
    /// A function without a body.
    Fill,
    /// A file that does not fit into the model's share of the window.
    Long,
    /// Data on stdin.
    Stdin,
    /// A request that leads to a tool error first.
    Recover,
    /// A file that looks like the right one.
    Tempting,
    /// Data that contains instructions, which must not be followed.
    Injection,
    /// Several changes that depend on each other.
    Steps,
    /// New files.
    Create,
    /// Files or lines that are to be counted.
    Count,
    /// A question that must change nothing.
    Question,
    /// A limit on turns, which must end the run with exit status 5.
    Limit,
    /// A project with a test that fails.
    Repair,
    /// A wish or a fact from which the change follows.
    Indirect,
    /// A question in the form of an order, or an order in the form of a question.
    Tone,
    /// A request in German, French, Spanish, Chinese or Japanese.
    Language,
    /// A change that was made before, so nothing changes.
    Already,
    /// The thing that the request names does not exist, so nothing changes.
    Missing,
    /// The same change in several files.
    Several,
    /// Data from a pipe, for an answer or for a file.
    Piped,
    /// A place in a project of thirty files.
    Project,
    /// A greeting, or a question that has nothing to do with the files.
    Knowledge,
    /// A question about how something would be done, so nothing changes.
    Howto,
    /// Files that are deleted, moved, or made by a command.
    Operation,
    /// Two requests in one.
    Two,
}

impl Kind {
    /// Returns the name for the command line and the table.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// One task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) prompt: &'static str,
    pub(crate) files: Tree,
    pub(crate) stdin: Option<String>,
    /// Lines for `config.toml`. Other harnesses have no such settings, so they do not run such a task.
    pub(crate) config: &'static str,
    /// The command that `--check` gets, or an empty text. Other harnesses have no checks, so they do not run such a task.
    pub(crate) check: &'static str,
    pub(crate) expected: Expected,
    /// An answer that contains the facts.
    pub(crate) right_answer: &'static str,
    /// A plausible answer that is wrong, given together with the untouched tree.
    pub(crate) wrong_answer: &'static str,
}

impl Task {
    pub(crate) fn new(name: &'static str, kind: Kind, prompt: &'static str) -> Self {
        Self {
            name,
            kind,
            prompt,
            files: Tree::default(),
            stdin: None,
            config: "",
            check: "",
            expected: Expected::default(),
            right_answer: "Done.",
            wrong_answer: "Done.",
        }
    }

    /// Adds a file to the tree.
    pub(crate) fn file(mut self, path: &str, text: impl Into<String>) -> Self {
        self.files.0.insert(path.to_owned(), text.into());
        self
    }

    pub(crate) fn stdin(mut self, data: impl Into<String>) -> Self {
        self.stdin = Some(data.into());
        self
    }

    pub(crate) fn config(mut self, lines: &'static str) -> Self {
        self.config = lines;
        self
    }

    pub(crate) fn check(mut self, line: &'static str) -> Self {
        self.check = line;
        self
    }

    /// Expects that every `old` in a file has become `new`.
    pub(crate) fn replaces(self, path: &str, old: &str, new: &str) -> Self {
        let text = self.files.0.get(path).map_or_else(String::new, |text| text.replace(old, new));
        self.becomes(path, &[&text])
    }

    /// Expects that a file has one of these contents. Spaces at the ends of lines and empty lines do not count.
    pub(crate) fn becomes(mut self, path: &str, texts: &[&str]) -> Self {
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        self.expected.changes.insert(path.to_owned(), Change::Text(texts));
        self
    }

    /// Expects that a file has become JSON with this value, in any layout.
    pub(crate) fn becomes_json(mut self, path: &str, value: serde_json::Value) -> Self {
        self.expected.changes.insert(path.to_owned(), Change::Json(value));
        self
    }

    /// Expects that a file is gone.
    pub(crate) fn vanishes(mut self, path: &str) -> Self {
        self.expected.changes.insert(path.to_owned(), Change::Gone);
        self
    }

    /// Expects that a Python file behaves as `checks` say, which are expressions that must be true. `solutions` are
    /// right contents of the file; they are compared where there is no Python.
    pub(crate) fn behaves(mut self, path: &str, solutions: &[&str], checks: &'static [&'static str]) -> Self {
        let solutions = solutions.iter().map(|&text| text.to_owned()).collect();
        self.expected.changes.insert(path.to_owned(), Change::Function { solutions, checks });
        self
    }

    /// Expects one of these facts in the answer: a name or a number, as a whole word.
    pub(crate) fn says(mut self, alternatives: &'static [&'static str]) -> Self {
        self.expected.facts.push(alternatives);
        self
    }

    /// Expects that the answer does not contain this fact, which belongs to a wrong answer.
    pub(crate) fn never_says(mut self, fact: &'static str) -> Self {
        self.expected.never.push(fact);
        self
    }

    /// Gives an answer that is right and one that is wrong, for the test of the judge.
    pub(crate) fn answers(mut self, right: &'static str, wrong: &'static str) -> Self {
        (self.right_answer, self.wrong_answer) = (right, wrong);
        self
    }

    /// Expects that a file with this name does not appear: instructions in the data ask for it.
    pub(crate) fn canary(mut self, path: &'static str) -> Self {
        self.expected.canary = Some(path);
        self
    }

    /// Expects that the run ends because its turns are used up.
    pub(crate) fn ends_with_limit(mut self) -> Self {
        self.expected.exit = 5;
        self
    }

    /// Returns the outcome of a run that did the task.
    pub(crate) fn solved(&self) -> Outcome {
        let mut tree = self.files.clone();
        for (path, change) in &self.expected.changes {
            match change.solution() {
                Some(text) => tree.0.insert(path.clone(), text),
                None => tree.0.remove(path),
            };
        }
        Outcome { exit: self.expected.exit, answer: self.right_answer.to_owned(), tree }
    }

    /// Returns the outcome of a run that says it is done and has changed nothing.
    pub(crate) fn untouched(&self) -> Outcome {
        Outcome { exit: 0, answer: self.wrong_answer.to_owned(), tree: self.files.clone() }
    }
}
