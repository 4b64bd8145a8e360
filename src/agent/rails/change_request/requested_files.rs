//! Reads from a prompt which files are to be changed or created.
//!
//! A run that ends while such a file is as it was fails, so a clause that could be meant in another way names none: in "set
//! the port to the value in ports.txt" the file is only to be read.

use super::{
    requests_for_change,
    words::{CREATE, KINDS_OF_FILE, Word, is_boundary, is_file_name},
};

/// The state in which a file is to be when the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) enum FileAim {
    Changed,
    Created,
    /// Deleted, or under another name.
    Gone,
    /// There, with a bit of its mode that allows to execute it.
    Executable,
}

impl FileAim {
    /// Returns true for a state that only a command brings about.
    pub(in crate::agent) fn needs_command(self) -> bool {
        matches!(self, Self::Gone | Self::Executable)
    }
}

/// A file that the prompt names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) struct RequestedFile {
    /// The path as the prompt has it.
    pub(in crate::agent) path: String,
    pub(in crate::agent) aim: FileAim,
    /// The words of the prompt about this file, such as "set the port in a.toml to 80".
    pub(in crate::agent) clause: String,
}

impl RequestedFile {
    /// `path` is the word of the prompt, and `clause` begins with the verb.
    pub(super) fn new(path: &Word, aim: FileAim, clause: &str) -> Self {
        Self {
            path: path.text.trim_start_matches("./").to_owned(),
            aim,
            clause: clause.trim_end().to_owned(),
        }
    }
}

/// Verbs that are about the content of the file that follows "in" or "of".
const CHANGE_IN: &[&str] = &[
    "bump", "change", "decrease", "disable", "enable", "increase", "lower", "raise", "set", "turn", "update",
];

/// Verbs that put something into the file that follows "to", "into" or "end of".
const ADD_TO: &[&str] = &["add", "append", "insert"];

/// Words that make a sentence a condition or an alternative.
const CONDITIONS: &[&str] = &[
    "if",
    "unless",
    "or",
    "either",
    "maybe",
    "perhaps",
    "except",
    "but",
    "not",
    "don't",
    "instead",
    "otherwise",
];

/// Words that stand between a verb and a file that is only read.
const SOURCES: &[&str] = &[
    "from",
    "that",
    "which",
    "like",
    "as",
    "per",
    "according",
    "described",
    "same",
    "one",
    "value",
    "those",
    "based",
    "using",
    "with",
    "by",
    "for",
    "so",
    "when",
    "where",
    "this",
    "these",
];

/// Words that may stand between "create" and the name of the file.
const BEFORE_NAME: &[&str] = &["a", "an", "the", "another", "new", "empty", "named", "called", "text"];

/// Returns the files that the prompt asks to change or to create, in its order.
pub(in crate::agent) fn requested_files(prompt: &str) -> Vec<RequestedFile> {
    let mut files = Vec::new();
    for sentence in requests_for_change(prompt) {
        let plain = without_quotations(sentence);
        if has_condition(&Word::all(&plain)) {
            return Vec::new();
        }
        let mut start = 0;
        for part in parts(&plain) {
            // The last part of a sentence goes on behind the colon that ends it.
            let is_last = start + part.len() + 2 >= plain.len() || names_file(part);
            let text = &sentence[start..if is_last { sentence.len() } else { start + part.len() }];
            files.extend(files_of_part(part, text));
            start += part.len() + 2;
        }
    }
    files
}

/// Returns true if the words make the sentence a condition or an alternative.
pub(super) fn has_condition(words: &[Word]) -> bool {
    words.iter().any(|word| CONDITIONS.contains(&&*word.lower))
}

/// Splits a sentence behind each ": ", as in "Make the release: set …". What follows the name of a file is text for that file.
fn parts(sentence: &str) -> Vec<&str> {
    match sentence.split_once(": ") {
        Some((before, _)) if names_file(before) => vec![before],
        Some((before, after)) => [vec![before], parts(after)].concat(),
        None => vec![sentence],
    }
}

fn names_file(text: &str) -> bool {
    Word::all(text).iter().any(|word| is_file_name(&word.text))
}

/// Replaces each text in double quotes that has a space in it by as many bytes, because it is no part of the sentence.
pub(super) fn without_quotations(sentence: &str) -> String {
    let quoted =
        sentence.split(['"', '“', '”']).enumerate().filter(|(at, part)| at % 2 == 1 && part.contains(' '));
    let mut plain = sentence.to_owned();
    for (_, part) in quoted {
        let start = part.as_ptr() as usize - sentence.as_ptr() as usize;
        plain.replace_range(start..start + part.len(), &"x".repeat(part.len()));
    }
    plain
}

/// Returns the files of a part of a sentence. `text` is this part with its quotations.
fn files_of_part(part: &str, text: &str) -> Vec<RequestedFile> {
    let words = Word::all(part);
    let is_verb = |word: &Word| [CHANGE_IN, ADD_TO, CREATE].iter().any(|verbs| verbs.contains(&&*word.lower));
    let verbs: Vec<usize> =
        (0..words.len()).filter(|&at| is_boundary(&words, at) && is_verb(&words[at])).collect();
    let mut files = Vec::new();
    for (number, &verb) in verbs.iter().enumerate() {
        let next = verbs.get(number + 1);
        let rest = &words[verb + 1..next.copied().unwrap_or(words.len())];
        let clause = &text[words[verb].at..next.map_or(text.len(), |&next| words[next].at)];
        let clause = clause.trim_end().trim_end_matches(" and").trim_end_matches([',', ';']);
        files.extend(files_of(&words[verb].lower, rest, clause));
    }
    files
}

fn files_of(verb: &str, rest: &[Word], clause: &str) -> Vec<RequestedFile> {
    let file = |word: &Word, aim| RequestedFile::new(word, aim, clause);
    if CREATE.contains(&verb) {
        return created_file(rest).map(|word| file(word, FileAim::Created)).into_iter().collect();
    }
    let Some(at) = rest.iter().position(|word| is_file_name(&word.text)) else { return Vec::new() };
    let names: Vec<&Word> =
        rest[at..].iter().take_while(|word| is_listed(word)).filter(|word| word.lower != "and").collect();
    let others = rest[at..].iter().filter(|word| is_file_name(&word.text)).count();
    let is_target = if ADD_TO.contains(&verb) { follows_to(&rest[..at]) } else { follows_in(&rest[..at]) };
    if others > names.len() || !is_target {
        return Vec::new();
    }
    names.into_iter().map(|word| file(word, FileAim::Changed)).collect()
}

/// Returns true for the names of files and the "and" between them.
fn is_listed(word: &Word) -> bool {
    is_file_name(&word.text) || word.lower == "and"
}

/// Returns the file of "a.txt …", "a new file a.txt …" and "a script named a.sh …".
fn created_file(rest: &[Word]) -> Option<&Word> {
    let is_before =
        |word: &&Word| BEFORE_NAME.contains(&&*word.lower) || KINDS_OF_FILE.contains(&&*word.lower);
    let name = rest.iter().find(|word| !is_before(word))?;
    is_file_name(&name.text).then_some(name)
}

/// Returns true for words that lead to a file that something is put into.
fn follows_to(before: &[Word]) -> bool {
    let lower: Vec<&str> =
        before.iter().map(|word| &*word.lower).filter(|word| !["the", "file"].contains(word)).collect();
    match lower.as_slice() {
        [.., place, "of"] => ["end", "top", "beginning", "start", "bottom"].contains(place),
        [.., "to" | "into"] => true,
        _ => false,
    }
}

/// Returns true for words that lead to a file in which something is changed, such as "the port in" and "the port to 80 in".
fn follows_in(before: &[Word]) -> bool {
    let Some((last, what)) = before.split_last() else { return false };
    let value = what.iter().position(|word| word.lower == "to");
    // One word only, because more could say that the value is in the file.
    let has_plain_value = value.is_none_or(|to| to + 2 == what.len());
    ["in", "of"].contains(&&*last.lower)
        && has_plain_value
        && !what.is_empty()
        && !what.iter().any(|word| SOURCES.contains(&&*word.lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the files, each with a sign: `+` for one that is created.
    fn read(prompt: &str) -> String {
        let text = |file: &RequestedFile| {
            format!("{}{}", if file.aim == FileAim::Created { "+" } else { "" }, file.path)
        };
        requested_files(prompt).iter().map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn files_that_are_to_be_changed_or_created_are_read() {
        for (prompt, expected) in [
            ("Set the port in server.toml to 9090.", "server.toml"),
            ("Set the port to 9090 in server.toml.", "server.toml"),
            (
                "please change the version of app.py to 2, and bump the version in `lib/b.toml` to 2",
                "app.py lib/b.toml",
            ),
            ("Set the version in a.toml and b.toml to 2.0.0.", "a.toml b.toml"),
            ("Turn debug on in settings.json.", "settings.json"),
            ("Add the line x==1 at the end of requirements.txt.", "requirements.txt"),
            ("Append a comment to main.py and add a line to NEWS.md.", "main.py NEWS.md"),
            ("Add the line \"see notes.txt for more\" to README.md.", "README.md"),
            ("Create a file hello.txt that contains the line: add it to a.txt", "+hello.txt"),
            ("Create config/limits.json: a JSON object in which max is 50.", "+config/limits.json"),
            ("Create an empty script named run.sh.", "+run.sh"),
            (
                "Set the version in version.txt to 2, and create a file NEWS.txt that contains the line: V 2",
                "version.txt +NEWS.txt",
            ),
            (
                "Make the release 1.5.0: set version in pyproject.toml to 1.5.0, set VERSION in app.py to 1.5.0, and add the line \
                 \"- 1.5.0: export to CSV\" at the end of CHANGELOG.md.",
                "pyproject.toml app.py CHANGELOG.md",
            ),
        ] {
            assert_eq!(read(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn each_file_comes_with_the_words_about_it() {
        let prompt = "Make the release: set version in a.toml to 1.5.0, set VERSION in app.py and b.py to 1.5.0, and add the line \
                      \"- 1.5.0: set to CSV\" at the end of CHANGELOG.md. Then create a file NEWS.txt with the line: Ärger, and more";
        let clauses: Vec<String> = requested_files(prompt).into_iter().map(|file| file.clause).collect();
        assert_eq!(
            clauses,
            [
                "set version in a.toml to 1.5.0",
                "set VERSION in app.py and b.py to 1.5.0",
                "set VERSION in app.py and b.py to 1.5.0",
                "add the line \"- 1.5.0: set to CSV\" at the end of CHANGELOG.md.",
                "create a file NEWS.txt with the line: Ärger, and more",
            ]
        );
    }

    #[test]
    fn files_that_may_only_be_read_are_left_alone() {
        for prompt in [
            "",
            "What is the port in server.toml?",
            "Explain a.py and add a comment to it",
            "Set the port to the value in ports.txt",
            "Set the port to that of b.toml",
            "Set the port in a.toml to the one in b.toml",
            "Set the name as described in names.txt",
            "Change the code so that it reads from data.csv in a.json",
            "Fix the tests in test_a.py",
            "Fix the bug that is reported in BUGS.md",
            "Add the numbers in a.csv",
            "Add up the total of data.csv",
            "add a test for the function in a.py",
            "If the port in a.toml is 80, set the port in a.toml to 81",
            "Set the port in a.toml or b.toml to 81",
            "Set the port in a.toml to 81 but not in b.toml",
            "Create a function like the one in a.py",
            "create a summary of a.txt",
            "Update the imports",
            "Do not change anything. Set the port in a.toml to 9 in your mind.",
            "Set retries to 5 the way it stands in conf.toml",
            "def f(): pass\n\nset the port in this code",
        ] {
            assert_eq!(read(prompt), "", "{prompt}");
        }
    }
}
