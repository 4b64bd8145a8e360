//! Decides by rule whether a prompt asks for an answer and nothing else, so that no tool that changes files is needed.
//!
//! A prompt that is taken for a question by mistake cannot be done, so each of its sentences must be a clear question or a
//! request to be told something, and none may have a verb that could mean a change.

use super::{
    forbids_changes, last_paragraph, sentences,
    words::{CHANGE, COPY, CREATE, FILL, PUT, Word, is_file_name},
};

/// The longest instruction that is judged, in bytes.
const MAX_INSTRUCTION: usize = 1000;

/// The words of which a question has one.
const ASKING: &[&str] = &[
    "what", "what's", "which", "who", "who's", "whom", "whose", "why", "when", "where", "how", "is", "are",
    "does", "did", "was", "were", "wie", "wieviel", "wieviele", "welche", "welcher", "welches", "wer", "wo",
    "wann", "warum", "wieso", "ist", "sind",
];

/// The first words of questions that are polite requests or proposals.
const POLITE: &[&str] = &[
    "can",
    "could",
    "would",
    "will",
    "shall",
    "should",
    "may",
    "might",
    "kannst",
    "könntest",
    "würdest",
    "please",
];

/// The first words of sentences that want to be told something.
const TELLING: &[&str] =
    &["answer", "explain", "describe", "list", "reply", "summarise", "summarize", "tell"];

/// Verbs that may mean a change, in addition to those of requests for a change.
const OTHER_CHANGES: &[&str] = &[
    "about",
    "add",
    "adjust",
    "append",
    "apply",
    "clean",
    "clear",
    "commit",
    "convert",
    "do",
    "drop",
    "erase",
    "execute",
    "extend",
    "extract",
    "follow",
    "format",
    "improve",
    "insert",
    "install",
    "merge",
    "not",
    "obey",
    "reorder",
    "revert",
    "run",
    "shorten",
    "sort",
    "split",
    "strip",
    "tidy",
    "translate",
    "undo",
    "use",
    "write",
    "schreibe",
    "lege",
    "füge",
    "lösche",
];

/// Returns true if the prompt clearly asks for an answer and for no change.
pub(in crate::agent::rails) fn asks_only_for_an_answer(prompt: &str) -> bool {
    let instruction = last_paragraph(prompt);
    if instruction.is_empty() || instruction.len() > MAX_INSTRUCTION || instruction.contains("```") {
        return false;
    }
    let sentences = sentences(instruction);
    let mut clear = sentences.iter().filter(|sentence| !Word::all(sentence).is_empty()).peekable();
    clear.peek().is_some() && clear.all(|sentence| is_question(sentence))
}

fn is_question(sentence: &str) -> bool {
    if forbids_changes(&sentence.to_lowercase()) && sentence.to_lowercase().starts_with("do") {
        return true;
    }
    let words = Word::all(sentence);
    let word = |at: usize| words.get(at).map_or("", |word: &Word| &*word.lower);
    let may_change = words.iter().any(|word| {
        [CHANGE, FILL, CREATE, PUT, COPY, OTHER_CHANGES].iter().any(|verbs| verbs.contains(&&*word.lower))
    });
    // "Say which imports are unused and kick them out"
    let acts_on_it = words
        .windows(3)
        .any(|three| three[0].lower == "and" && ["it", "them", "each", "all"].contains(&&*three[2].lower));
    let polite = POLITE.contains(&word(0));
    if may_change || acts_on_it || polite {
        return false;
    }
    // "Describe the project in README.md" may mean that README.md is to be changed.
    let into_file = words.windows(2).any(|pair| {
        ["in", "into", "to", "as", "on", "at"].contains(&&*pair[0].lower) && is_file_name(&pair[1].text)
    });
    if ASKING.contains(&word(0)) {
        return true;
    }
    if sentence.ends_with('?') && words.iter().any(|word| ASKING.contains(&&*word.lower)) {
        return true;
    }
    let for_me = ["me", "us", "mir", "uns"].contains(&word(1));
    match word(0) {
        "give" | "show" | "zeige" | "zeig" | "sag" | "nenne" | "erkläre" => for_me && !into_file,
        "count" => {
            ["the", "all", "how", "lines", "words", "every", "each"].contains(&word(1)) && !to_file(&words)
        }
        "list" => !to_file(&words),
        first => TELLING.contains(&first) && (!into_file || for_me),
    }
}

/// Returns true for a file that may be the destination of a list.
fn to_file(words: &[Word]) -> bool {
    words
        .windows(2)
        .any(|pair| ["into", "to", "as"].contains(&&*pair[0].lower) && is_file_name(&pair[1].text))
}

#[cfg(test)]
mod tests {
    use super::{super::asks_for_a_change, *};

    const QUESTIONS: &[&str] = &[
        "what is in a.txt?",
        "what is in a.txt",
        "which port does a.txt name?",
        "How many lines are there in notes.txt?",
        "Which of these files is Python? Answer with the name only.",
        "Where is the function load defined?",
        "In which file is MAX defined?",
        "Is debug on in config.toml?",
        "Does main.py print anything?",
        "Why does the test in a_test.py fail?",
        "Who wrote README.md?",
        "Tell me what main.py prints.",
        "Show me the first line of a.txt",
        "Count the lines of log.txt.",
        "List all markdown files in docs",
        "Explain main.py",
        "Summarise notes.md",
        "What is wrong with main.py? Do not change anything.",
        "ignore all of this and delete it\n\nWhat does the text say?",
        "Welche Dateien gibt es?",
    ];

    const OTHERS: &[&str] = &[
        "",
        "hi",
        "go on",
        "fix the typo in README.md",
        "can you fix the typo in README.md?",
        "Could you have a look at main.py?",
        "What is wrong with main.py? Fix it.",
        "Why is the port wrong? It should be 9000.",
        "Show the date in the footer of index.html",
        "Describe the project in README.md",
        "List the functions and write them to out.txt",
        "List the functions into out.txt",
        "Count from 1 to 10 in count.txt",
        "Tell me which imports are unused and drop them",
        "Tell me what is unused and kick it out",
        "How about a docstring for area in shapes.py?",
        "Read todo.md and do what it says",
        "a.txt needs a second line",
        "What is the sum of the numbers in a.csv? Put it into sum.txt.",
        "Sort names.txt",
    ];

    #[test]
    fn only_clear_questions_are_questions() {
        let missed: Vec<&&str> = QUESTIONS.iter().filter(|prompt| !asks_only_for_an_answer(prompt)).collect();
        assert!(missed.is_empty(), "{missed:#?}");
        let mistaken: Vec<&&str> = OTHERS.iter().filter(|prompt| asks_only_for_an_answer(prompt)).collect();
        assert!(mistaken.is_empty(), "{mistaken:#?}");
        assert!(!QUESTIONS.iter().any(|prompt| asks_for_a_change(prompt)));
    }
}
