//! Turns back a change of the test that has to pass, where the request does not speak of changing tests.
//!
//! Small models that cannot find a mistake in the code change what the test expects, and insist on it. A model that makes the
//! change a third time gets its way, because a test can be wrong, too.

use std::collections::HashMap;

use super::{TurnedBack, change_request::last_paragraph};
use crate::tools::Change;

/// The parts of the names of files and directories that hold tests, in lower case.
const TEST_NAMES: [&str; 4] = ["test", "tests", "spec", "specs"];
/// Further ones of files that a check runs.
const CHECK_NAMES: [&str; 4] = ["check", "checks", "verify", "validate"];
/// The words for tests in a request, in lower case.
const TESTS: [&str; 11] = [
    "test",
    "tests",
    "testcase",
    "testcases",
    "spec",
    "specs",
    "suite",
    "assertion",
    "assertions",
    "asserts",
    "fixtures",
];
/// The words that say that a test has to pass, in lower case.
const PASSING: [&str; 12] = [
    "pass", "passes", "passing", "fail", "fails", "failing", "failed", "failure", "failures", "green",
    "succeed", "succeeds",
];
/// Imperatives that change what stands behind them, in lower case.
const CHANGING: [&str; 23] = [
    "adapt",
    "add",
    "adjust",
    "append",
    "change",
    "correct",
    "cover",
    "create",
    "delete",
    "edit",
    "extend",
    "generate",
    "implement",
    "insert",
    "modify",
    "remove",
    "rewrite",
    "split",
    "update",
    "write",
    "ergänze",
    "schreibe",
    "ändere",
];
/// Words of requests that are about many files, so that tests may be among them, in lower case.
const EVERYWHERE: [&str; 10] = [
    "rename",
    "replace",
    "move",
    "migrate",
    "convert",
    "everywhere",
    "throughout",
    "port",
    "umbenennen",
    "ersetze",
];
/// Words behind which something else is spoken of, in lower case.
const BOUNDARIES: [&str; 22] = [
    "until", "so", "that", "because", "if", "when", "which", "where", "not", "without", "but", "fix", "make",
    "repair", "run", "let", "solve", "find", "see", "then", "damit", "bis",
];
const NEGATIONS: [&str; 5] = ["not", "never", "don't", "without", "no"];

/// Judges changes of tests in a run.
pub(super) struct TestGuard {
    /// The words of the user, without data from stdin, in lower case.
    request: String,
    checks: Vec<String>,
    /// Some test has to pass, and tests are not to be changed, as far as the request says so without naming one.
    is_on: bool,
    /// The number of times that a change of a file was judged.
    judged: HashMap<String, u32>,
}

impl TestGuard {
    /// `request` is what the user wrote, and `checks` are the command lines that have to pass in the end.
    pub(super) fn new(request: &str, checks: &[String]) -> Self {
        let request = last_paragraph(request).to_lowercase();
        let is_test = |word: &str| TESTS.contains(&word) || has_part(word, &TEST_NAMES);
        let wants_passing = words(&request).any(is_test) && has_any(&request, &PASSING);
        let is_on = (wants_passing || !checks.is_empty())
            && !has_any(&request, &EVERYWHERE)
            && !speaks_of_changing(&request, |word| TESTS.contains(&word));
        Self { request, checks: checks.to_vec(), is_on, judged: HashMap::new() }
    }

    /// Judges a change of a file that exists. Returns the reason why it is turned back, and the names of the files that it tests.
    pub(super) fn judge(&mut self, change: &Change) -> Option<(TurnedBack, Vec<String>)> {
        let old = change.old.as_deref()?;
        let path = change.path.as_str();
        if !self.is_on || !self.is_test(path) || self.means_file(path) {
            return None;
        }
        let times = self.judged.entry(path.to_owned()).or_default();
        *times += 1;
        let way = match times {
            1 => "Correct the code that it tests.",
            2 => "Correct the code that it tests. Only if the test itself is wrong, make this call again.",
            _ => return None,
        };
        let tested = tested_files(&String::from_utf8_lossy(old));
        let advice = if tested.is_empty() {
            "Read the code that it tests, and correct that.".to_owned()
        } else {
            format!("It tests {}: correct the mistake there.", tested.join(" and "))
        };
        let found = TurnedBack {
            fact: format!(
                "Nothing was changed: {path} is a test that has to pass, and the request does not ask for another test. \
                 {way}"
            ),
            advice: Some(advice),
        };
        Some((found, tested))
    }

    /// Returns true if the file is a test by its name, or a check runs it and it is one.
    fn is_test(&self, path: &str) -> bool {
        let runs = |line: &String| line.split_whitespace().any(|word| names(word, path));
        has_part(path, &TEST_NAMES) || (has_part(path, &CHECK_NAMES) && self.checks.iter().any(runs))
    }

    /// Returns true if the request may want this file to be changed.
    fn means_file(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let name = path.rsplit('/').next().unwrap_or(&path);
        // `report.py` in a request is not the one in `tests/`.
        let is_file = |word: &str| {
            word.strip_prefix("./").unwrap_or(word) == path || (word == name && has_part(name, &TEST_NAMES))
        };
        let is_named = words(&self.request).any(is_file);
        is_named && (!has_any(&self.request, &PASSING) || speaks_of_changing(&self.request, is_file))
    }
}

/// Returns true if this word of a command line is the file, or a directory that has it, also with the name of one test in it
/// (`test_x.py::test_y`).
fn names(word: &str, path: &str) -> bool {
    let word = word.split("::").next().unwrap_or(word).trim_matches(['\'', '"', ';']);
    let word = word.strip_prefix("./").unwrap_or(word).trim_end_matches('/');
    !word.is_empty() && path.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if one of the parts of the path is among these: `test` and `stats` of `src/statsTest.py`.
fn has_part(path: &str, parts: &[&str]) -> bool {
    let mut apart = String::new();
    let mut was_lower = false;
    for c in path.chars() {
        if c.is_uppercase() && was_lower {
            apart.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        apart.extend(if c.is_alphanumeric() { c } else { ' ' }.to_lowercase());
    }
    apart.split(' ').any(|part| parts.contains(&part))
}

/// Returns true if an imperative for a change stands before a word that `is_meant`, with nothing between them that ends what
/// it is about.
fn speaks_of_changing(request: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    let (mut changes, mut is_negated) = (false, false);
    for text in request.split_whitespace() {
        let word = trimmed(text);
        if CHANGING.contains(&word) {
            changes = !is_negated;
        } else if BOUNDARIES.contains(&word) {
            changes = false;
        } else if changes && is_meant(word) {
            return true;
        }
        let ends = text.ends_with(['.', ',', ';', ':', '!', '?']);
        changes &= !ends;
        is_negated = !ends && NEGATIONS.contains(&word);
    }
    false
}

fn has_any(text: &str, known: &[&str]) -> bool {
    words(text).any(|word| known.contains(&word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().map(trimmed)
}

/// Returns a word without what stands around it in a sentence.
fn trimmed(word: &str) -> &str {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '_'));
    word.trim_end_matches('.')
}

/// Returns the files that a test takes its code from, as its text names them: at most three, and not other tests. Only simple
/// forms are known: `from NAME import`, `import NAME`, and paths in quotes that begin with `./` or `../`.
fn tested_files(test: &str) -> Vec<String> {
    const KNOWN: [&str; 12] = [
        "unittest",
        "pytest",
        "os",
        "sys",
        "re",
        "json",
        "math",
        "pathlib",
        "subprocess",
        "tempfile",
        "typing",
        "random",
    ];
    let mut found: Vec<String> = Vec::new();
    for line in test.lines() {
        let mut words = line.split_whitespace();
        let module = match words.next() {
            Some("from" | "import") => words.next().map(|name| name.trim_end_matches([',', ';'])),
            _ => None,
        };
        let is_module = |name: &&str| {
            name.starts_with(|c: char| c.is_alphabetic())
                && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
                && !KNOWN.contains(name)
        };
        found.extend(module.filter(is_module).map(|name| format!("{}.py", name.replace('.', "/"))));
        let quoted = line.split(['"', '\'']).skip(1).step_by(2);
        let paths = quoted.filter(|text| text.starts_with("./") || text.starts_with("../"));
        found.extend(paths.map(str::to_owned));
    }
    found.retain(|name| !has_part(name, &TEST_NAMES));
    found.dedup();
    found.truncate(3);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "import os\nfrom stats import median\n\nassert median([1, 2]) == 1.5\n";

    /// Returns what the model reads about a change of a file.
    fn judged(request: &str, checks: &[&str], path: &str) -> Option<String> {
        let checks: Vec<String> = checks.iter().map(|check| (*check).to_owned()).collect();
        let change = Change { path: path.into(), old: Some(TEST.into()), new: "assert True\n".into() };
        let mut guard = TestGuard::new(request, &checks);
        let first = guard.judge(&change).map(|(found, _)| found);
        assert_eq!(guard.judge(&change).is_some(), first.is_some(), "it is turned back twice");
        assert!(guard.judge(&change).is_none(), "a model that insists gets its way");
        first.map(|found| [found.fact, found.advice.unwrap_or_default()].join(" "))
    }

    #[test]
    fn a_test_that_has_to_pass_is_not_changed_at_once() {
        assert_eq!(
            judged("Repair stats.py.", &["python3 test_stats.py"], "test_stats.py").unwrap(),
            "Nothing was changed: test_stats.py is a test that has to pass, and the request does not ask for another test. \
             Correct the code that it tests. It tests stats.py: correct the mistake there."
        );
        for (request, checks, path) in [
            ("fix the rounding in report.py", &["pytest -q"][..], "tests/report.py"),
            ("fix the rounding in report.py", &["sh ./check.sh"], "check.sh"),
            ("fix it", &["pytest 'ci/verify.py::test_all'"], "ci/verify.py"),
            ("test_stats.py fails. Repair stats.py so that it passes.", &[], "test_stats.py"),
            ("The test in test_stats.py fails. Fix the function.", &["true"], "test_stats.py"),
            ("The test fails. Find out why and repair the code, not the test.", &[], "src/StatsTest.java"),
            ("Make all tests pass.", &[], "stats.spec.ts"),
            ("Fix the failing test!", &[], "src/__tests__/stats.js"),
            ("Change stats.py and make the tests pass", &[], "stats_test.go"),
            ("Change the code until the test passes", &[], "stats_test.go"),
            ("Do not change the tests, add what is missing.", &["make"], "stats_test.go"),
            ("Add a function mean. All tests have to pass.", &[], "stats_test.go"),
        ] {
            assert!(judged(request, checks, path).is_some(), "{request} {checks:?} {path}");
        }
    }

    #[test]
    fn other_changes_are_carried_out() {
        for (request, checks, path) in [
            ("fix the rounding in report.py", &["pytest -q"][..], "report.py"),
            ("fix the rounding in report.py", &["python3 report.py"], "report.py"),
            ("fix the rounding in report.py", &["sh check.sh"], "other/check.rs"),
            ("fix it", &["pytest -q"], "contest/latest.py"),
            ("say hello in test_stats.py", &[], "test_stats.py"),
            ("Correct the comment in test_stats.py", &["pytest"], "test_stats.py"),
            ("The tests fail. Update test_stats.py.", &["pytest"], "test_stats.py"),
            ("Add a test for the empty list", &["pytest"], "test_stats.py"),
            ("Add a function mean and tests for it; all must pass", &[], "test_stats.py"),
            ("The suite fails because the tests are old: adapt the tests", &["pytest"], "test_stats.py"),
            ("Rename median to middle", &["pytest"], "test_stats.py"),
            ("Write more assertions and let them pass", &["pytest"], "test_stats.py"),
        ] {
            assert_eq!(judged(request, checks, path), None, "{request} {checks:?} {path}");
        }
        let new = Change { path: "test_a.py".into(), old: None, new: String::new() };
        assert!(TestGuard::new("make the tests pass", &[]).judge(&new).is_none(), "a new file");
    }
}
