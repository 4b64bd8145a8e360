//! Decides by rule whether a prompt asks for a change of files.
//!
//! The rule reads the words and nothing else. A prompt that is taken for a request by mistake makes a run fail that gave
//! a good answer, so a prompt that could be meant in another way is none: questions, requests to tell or to show
//! something, code that came with the prompt, and languages that the rule does not know.

mod asked_commands;
mod data_questions;
mod executable_files;
mod named_files;
mod questions;
mod removed_files;
mod replacements;
mod requested_files;
mod words;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::agent::request::Prompt;

pub(super) use asked_commands::{AskedCommand, CommandAim, asked_commands, is_test};
pub(super) use data_questions::asks_about_data;
pub(super) use named_files::{file_name, may_mean_all, mentions_file, names_all_files};
pub(super) use questions::asks_only_for_an_answer;
pub(super) use replacements::{Place, Replacement, only_replacements, replacements};
pub(super) use requested_files::requested_files;
pub(in crate::agent) use requested_files::{FileAim, RequestedFile};
pub(super) use words::{has_word, is_file_name};

use executable_files::{executable_files, makes_executable};
use removed_files::removed_files;
use requested_files::{has_condition, without_quotations};
use words::{
    CHANGE, CODE_TARGETS, COPY, CREATE, EXPLAIN, FILL, KINDS_OF_CODE, KINDS_OF_FILE, PUT, QUESTION, Word,
    is_boundary,
};

/// The longest instruction that is judged, in bytes. A longer one is a text with a request in it.
const MAX_INSTRUCTION: usize = 2000;

/// The changes that a prompt clearly asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::agent) struct AskedChange {
    /// The content of files, or new files.
    pub(in crate::agent) content: bool,
    /// Files are to be deleted, moved, renamed or made executable.
    pub(in crate::agent) by_command: bool,
    /// A command is to be run, such as the tests. It may change nothing.
    pub(in crate::agent) command: bool,
}

impl AskedChange {
    pub(in crate::agent) fn of(prompt: &Prompt) -> Self {
        let prompt = prompt.user_text();
        Self {
            content: asks_for_a_change(prompt),
            by_command: needs_command(prompt),
            command: !asked_commands(prompt).is_empty(),
        }
    }

    /// Returns true if something is asked for that the run has the tools for: for changes of files if `files`, and for commands if
    /// `commands`.
    pub(in crate::agent) fn can_be_checked(self, files: bool, commands: bool) -> bool {
        (self.any() && files) || (self.command && commands)
    }

    /// Returns true if files are to be changed.
    pub(in crate::agent) fn any(self) -> bool {
        self.content || self.by_command
    }
}

/// Returns true if the prompt asks for something about files that only a command does.
pub(super) fn needs_command(prompt: &str) -> bool {
    !files_for_command(prompt).is_empty()
}

/// Returns the files that are to be gone or executable, which only a command does.
pub(super) fn files_for_command(prompt: &str) -> Vec<RequestedFile> {
    [removed_files(prompt), executable_files(prompt)].concat()
}

/// Returns true if the prompt clearly asks for a change of the content of files.
pub(super) fn asks_for_a_change(prompt: &str) -> bool {
    let forbids = || forbids_changes(&last_paragraph(prompt).to_lowercase());
    !requests_for_change(prompt).is_empty()
        || (replacements(prompt).iter().any(|replacement| replacement.place == Place::Everywhere)
            && !forbids())
}

/// The bytes at the beginning and at the end of a long prompt in which its request is looked for.
const END_OF_PROMPT: usize = 16 * 1024;

/// Returns the text in which the request of a prompt is looked for: a long prompt is mostly data, so of that one its beginning
/// and its end. Rails that read every word of a prompt of a megabyte take longer than all else that the daemon does with it.
pub(super) fn request_text(prompt: &str) -> Cow<'_, str> {
    if prompt.len() <= 2 * END_OF_PROMPT {
        return prompt.into();
    }
    let beginning = &prompt[..prompt.floor_char_boundary(END_OF_PROMPT)];
    let end = &prompt[prompt.ceil_char_boundary(prompt.len() - END_OF_PROMPT)..];
    format!("{beginning}\n\n{end}").into()
}

/// Returns the sentences of the prompt that clearly ask for a change of files.
pub(super) fn requests_for_change(prompt: &str) -> Vec<&str> {
    let instruction = last_paragraph(prompt);
    if instruction.is_empty()
        || instruction.len() > MAX_INSTRUCTION
        || forbids_changes(&instruction.to_lowercase())
    {
        return Vec::new();
    }
    let comes_with_text = instruction.len() < prompt.trim().len() || prompt.contains("```");
    let mut sentences = sentences(instruction);
    sentences.retain(|sentence| is_request(sentence, instruction, comes_with_text));
    sentences
}

/// Returns the sentences of the prompt that can be orders, whatever about: no questions. None if one of them is a condition or
/// an alternative, or if nothing may be changed.
fn orders(prompt: &str) -> Vec<&str> {
    let instruction = last_paragraph(prompt);
    if instruction.len() > MAX_INSTRUCTION || forbids_changes(&instruction.to_lowercase()) {
        return Vec::new();
    }
    let sentences = sentences(instruction);
    if sentences.iter().any(|sentence| has_condition(&Word::all(&without_quotations(sentence)))) {
        return Vec::new();
    }
    sentences.into_iter().filter(|sentence| can_be_order(sentence)).collect()
}

/// Returns true for a sentence that is neither empty nor a question, and does not only want to be told something.
fn can_be_order(sentence: &str) -> bool {
    let words = Word::all(sentence);
    let only_tells = |first: &Word| [QUESTION, EXPLAIN].iter().any(|list| list.contains(&&*first.lower));
    words.first().is_some_and(|first| !only_tells(first)) && !sentence.ends_with('?')
}

/// Returns the instruction of a prompt. Data from stdin comes first and the instruction last, with an empty line between
/// them.
pub(super) fn last_paragraph(prompt: &str) -> &str {
    prompt.trim_end().rsplit("\n\n").next().unwrap_or(prompt).trim()
}

/// Returns true if the prompt says that nothing may be changed. That nothing else may be changed is no such sentence.
fn forbids_changes(prompt: &str) -> bool {
    ["not change", "n't change", "not edit", "n't edit", "not modify", "n't modify", "not write", "n't write"]
        .into_iter()
        .chain(["without changing", "without editing", "without modifying", "without writing", "dry run"])
        .filter_map(|beginning| prompt.split_once(beginning))
        .any(|(_, object)| {
            let object = object.trim_start();
            let nothing = ["any file", "anything", "the file", "files", "it", "them"]
                .iter()
                .find_map(|all| object.strip_prefix(all));
            object.is_empty() || nothing.is_some_and(|rest| !rest.trim_start().starts_with("else"))
        })
}

/// Splits a text behind `.`, `!` and `?`, where white space follows. A sentence keeps its end.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, next) in text.char_indices() {
        if next == '\n' || (next.is_whitespace() && text[..at].ends_with(['.', '!', '?'])) {
            sentences.push(text[start..at].trim());
            start = at;
        }
    }
    sentences.push(text[start..].trim());
    sentences
}

/// Judges one sentence of the instruction. The file may be named in another one: "The port in a.toml is wrong. Change it
/// to 80."
fn is_request(sentence: &str, instruction: &str, comes_with_text: bool) -> bool {
    let words = Word::all(sentence);
    let Some(first) = words.first() else { return false };
    if sentence.ends_with('?') || QUESTION.contains(&&*first.lower) || EXPLAIN.contains(&&*first.lower) {
        return false;
    }
    let names_file = Word::all(instruction).iter().any(|word| is_file_name(&word.text));
    let verbs = (0..words.len()).filter(|&at| is_boundary(&words, at));
    verbs.into_iter().any(|at| {
        let rest = &words[at + 1..];
        match &*words[at].lower {
            verb if CHANGE.contains(&verb) && changes_content(verb, rest) => {
                // "Find the place and correct it": what is searched for is in a file.
                let is_searched =
                    first.lower == "find" && rest.first().is_some_and(|word| word.lower == "it");
                names_file || (!comes_with_text && (is_searched || names_code(rest)))
            }
            verb if FILL.contains(&verb) => names_file || (!comes_with_text && names_code(rest)),
            verb if CREATE.contains(&verb) => creates_file(rest) && !makes_executable(rest),
            "add" | "append" | "insert" => names_file && adds_to_file(rest),
            "write" => has_destination(rest, &["to", "into", "as", "named", "called", "file"]),
            verb if PUT.contains(&verb) => has_destination(rest, &["to", "into", "in", "as"]),
            verb if COPY.contains(&verb) => has_file_after(rest, &["to", "into", "as"]),
            _ => false,
        }
    })
}

/// Returns false if the words behind the verb show that it is about something other than the content of a file. There is
/// no tool that deletes or renames a file.
fn changes_content(verb: &str, rest: &[Word]) -> bool {
    let object = rest.iter().find(|word| !["the", "file", "all", "both"].contains(&&*word.lower));
    let whole_file = ["remove", "delete", "rename", "move", "turn"].contains(&verb)
        && object.is_some_and(|word| is_file_name(&word.text));
    let other = ["me", "us", "my", "of", "up", "directory", "distance", "your"];
    !whole_file && rest.first().is_some_and(|word| !other.contains(&&*word.lower))
}

/// Returns true for words that mean code or a file of this project, and not code in the prompt.
fn names_code(rest: &[Word]) -> bool {
    if rest.iter().any(|word| ["following", "this", "below", "above", "these"].contains(&&*word.lower)) {
        return false;
    }
    let pairs = rest.windows(2).map(|pair| (&*pair[0].lower, &*pair[1].lower));
    pairs.into_iter().any(|(article, noun)| {
        ["the", "all", "every", "each"].contains(&article) && CODE_TARGETS.contains(&noun)
    })
}

/// Returns true for "a.txt …", "a new file …", "… named a.txt" and "a function … in a.py".
fn creates_file(rest: &[Word]) -> bool {
    let mut object =
        rest.iter().skip_while(|word| ["a", "an", "the", "another", "one"].contains(&&*word.lower)).take(3);
    let first = object.clone().next();
    if first.is_some_and(|word| is_file_name(&word.text)) {
        return true;
    }
    let is_file = object.any(|word| KINDS_OF_FILE.contains(&&*word.lower));
    is_file && rest.iter().take_while(|word| !word.lower.eq("of")).any(|word| word.lower == "file")
        || has_file_after(rest, &["named", "called", "name"])
        || is_piece_of_code(rest) && has_file_after(rest, &["in", "into", "to"])
}

/// Returns true for "… to a.txt" and "a line … in a.txt", but not for "the numbers in a.csv".
fn adds_to_file(rest: &[Word]) -> bool {
    let is_new = rest.first().is_some_and(|word| ["a", "an", "another"].contains(&&*word.lower));
    let up = rest.first().is_some_and(|word| ["up", "the", "together", "all"].contains(&&*word.lower));
    let into =
        rest.iter().any(|word| ["to", "into", "after", "before", "above", "below"].contains(&&*word.lower));
    is_new || is_piece_of_code(rest) || (into && !(up && has_file_after(rest, &["in", "from"])))
}

fn is_piece_of_code(rest: &[Word]) -> bool {
    rest.iter().take(3).any(|word| KINDS_OF_CODE.contains(&&*word.lower))
}

/// Returns true for "a.txt …", "… to a.txt" with one of the words `before`, and "… in a file".
fn has_destination(rest: &[Word], before: &[&str]) -> bool {
    rest.first().is_some_and(|word| is_file_name(&word.text))
        || has_file_after(rest, before)
        || rest.windows(3).any(|three| {
            ["to", "into", "in"].contains(&&*three[0].lower)
                && ["a", "the", "new"].contains(&&*three[1].lower)
                && three[2].lower == "file"
        })
}

/// Returns true if one of these words stands directly before the name of a file. Articles and "file" may stand between.
fn has_file_after(words: &[Word], before: &[&str]) -> bool {
    (1..words.len()).any(|at| {
        let mut earlier = words[..at].iter().rev();
        let previous = earlier.find(|word| {
            !["a", "an", "the", "new", "file", "it", "end", "of", "top"].contains(&&*word.lower)
                || before.contains(&&*word.lower)
        });
        is_file_name(&words[at].text) && previous.is_some_and(|word| before.contains(&&*word.lower))
    })
}
