//! The words of a request by which changes are judged.

use std::collections::HashSet;

use crate::agent::rails::change_request::{
    Replacement, has_word, last_paragraph, may_mean_all, only_replacements, requests_for_change,
};

/// Words that say nothing about a place, in lower case: articles, prepositions, and keywords of programming languages.
const STOP_WORDS: [&str; 72] = [
    "an", "and", "are", "as", "at", "be", "but", "by", "case", "class", "const", "def", "do", "each", "elif",
    "else", "end", "enum", "every", "false", "file", "fn", "for", "from", "func", "function", "get", "if",
    "impl", "import", "in", "into", "is", "it", "its", "let", "line", "new", "no", "not", "null", "of", "on",
    "or", "pub", "return", "self", "set", "so", "static", "struct", "that", "the", "then", "this", "to",
    "true", "try", "type", "up", "use", "var", "void", "was", "when", "where", "while", "with", "das", "der",
    "die", "und",
];

/// The request of a run.
pub(super) struct Request {
    /// The words of the user, without data from stdin.
    pub(super) instruction: String,
    /// The sentences that ask for a change, in lower case.
    pub(super) changes: Vec<String>,
    /// The replacements, if nothing else is asked for.
    pub(super) only_replacements: Vec<Replacement>,
}

impl Request {
    pub(super) fn new(prompt: &str) -> Self {
        let changes = requests_for_change(prompt).into_iter().map(str::to_lowercase).collect();
        let only_replacements = only_replacements(prompt);
        Self { instruction: last_paragraph(prompt).to_owned(), changes, only_replacements }
    }

    /// Returns true if a sentence that asks for a change has one of these words.
    pub(super) fn has_word(&self, words: &[&str]) -> bool {
        self.changes.iter().any(|sentence| has_word(sentence, words))
    }

    /// Returns true if the request may mean all places of a text.
    pub(super) fn may_mean_all(&self) -> bool {
        may_mean_all(&self.instruction)
    }

    /// Returns the words of the sentences that ask for a change which may name a place.
    pub(super) fn place_words(&self) -> HashSet<&str> {
        self.changes.iter().flat_map(|sentence| place_words(sentence)).collect()
    }
}

/// Returns the words of a text in lower case that may name a place.
pub(super) fn place_words(lower: &str) -> impl Iterator<Item = &str> {
    lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 1 && !STOP_WORDS.contains(word) && word.contains(char::is_alphabetic))
}
