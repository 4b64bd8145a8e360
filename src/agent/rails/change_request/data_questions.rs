//! Decides by rule whether a prompt asks about the data that came with it, so that no file is needed for the answer.

use super::{
    asks_only_for_an_answer, last_paragraph,
    words::{CODE_TARGETS, Word, has_word, is_file_name},
};

/// The minimum number of lines of the data.
const MIN_LINES: usize = 2;
/// A shorter word may stand anywhere, in bytes.
const MIN_WORD: usize = 4;

/// Words that mean the data, in lower case.
const THIS: [&str; 8] = ["this", "these", "above", "input", "stdin", "diese", "dieser", "dieses"];

/// Words of questions for which files may be needed, in lower case.
const NEEDS_FILES: [&str; 19] = [
    "directory",
    "folder",
    "dir",
    "here",
    "line",
    "path",
    "package",
    "crate",
    "import",
    "imports",
    "program",
    "app",
    "application",
    "document",
    "documentation",
    "docs",
    "implemented",
    "why",
    "warum",
];

/// Returns true if the prompt is a question, and the data before it have what it asks about.
pub(in crate::agent::rails) fn asks_about_data(prompt: &str) -> bool {
    let question = last_paragraph(prompt);
    let data = prompt.trim_end().strip_suffix(question).unwrap_or_default().trim();
    if !asks_only_for_an_answer(prompt) || data.lines().nth(MIN_LINES - 1).is_none() {
        return false;
    }
    let words = Word::all(question);
    let needs_files = words.iter().any(|word| {
        let lower = &*word.lower;
        is_file_name(&word.text) || CODE_TARGETS.contains(&lower) || NEEDS_FILES.contains(&lower)
    });
    if needs_files {
        return false;
    }
    let long_words: Vec<&str> =
        words.iter().map(|word| &*word.lower).filter(|lower| lower.len() >= MIN_WORD).collect();
    words.iter().any(|word| THIS.contains(&&*word.lower)) || has_word(data, &long_words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_data_are_no_questions_about_files() {
        let table = "city,inhabitants\nUlm,128000\nKiel,247000";
        for question in [
            "Which city has the most inhabitants?",
            "How many of these have more than 200000?",
            "What is this?",
            "Summarise the text above.",
        ] {
            assert!(asks_about_data(&format!("{table}\n\n{question}")), "{question}");
        }
        for question in [
            "Which file has these?",
            "Which functions in the code read this?",
            "Who is the mayor?",
            "Why is this wrong?",
            "Write the largest city into a.txt.",
            "Add this to the table.",
            "What does b.csv say about the inhabitants?",
        ] {
            assert!(!asks_about_data(&format!("{table}\n\n{question}")), "{question}");
        }
        assert!(!asks_about_data("Which city has the most inhabitants?"), "no data");
        assert!(!asks_about_data("I have a shop in Django.\n\nWhere is the shop configured?"), "one line");
    }
}
