//! Phrasings as patterns: `[show|print] $F[| please]`. `[a|b]` is one of several, `$F` a phrase of
//! [`PHRASES`], `{f}` a slot that is filled with a name or a text and is never changed.

mod around;

use super::Draw;
use around::{AFTER, BEFORE_COMMANDS, BEFORE_QUESTIONS, FIRST, LAST};

/// Phrases that many requests share. The key is the letter after `$`.
const PHRASES: &[(char, &str)] = &[
    // A file.
    (
        'F',
        "[{f}|{f}|{f}|{f}|{f}|{f}|{f}|the file {f}|file {f}|the {f} file|my {f}|our {f}|the {f}|the file called {f}|the file named {f}|that {f} file|this file: {f}|my file {f}|the file at {f}|the document {f}|the existing file {f}|the file with the name {f}|the text file {f}|our file {f}|the file ({f})]",
    ),
    // The place where we are.
    (
        'H',
        "[here|here|in this directory|in this folder|in the current directory|in the current folder|in this project|in the working directory|in my project|in this repo|in the repository|in the repo|in the project|in the project root|in the root|at the top level|in the current dir|in this dir|in my current folder|in our project|right here|in this place|in my folder|in my working directory|around here|in this workspace]",
    ),
    // A directory.
    (
        'D',
        "[{d}|{d}|{d}|{d}/|the {d} directory|the {d} directory|the {d} folder|the {d} folder|the directory {d}|the folder {d}|my {d} folder|the dir {d}|the {d} dir|the folder called {d}|the directory named {d}|our {d} directory|the subdirectory {d}|the subfolder {d}]",
    ),
    // Verbs for something that is looked at.
    (
        'R',
        "[read|read|read|show|show me|open|open|view|display|print|cat|output|dump|inspect|check|examine|see|check out|look at|look into|look inside|look through|go through|go over|have a look at|take a look at|take a peek at|peek at|peek into|pull up|bring up|open up|read out|read through|read me|show us|give me|get me|get|let me see|let me read|let me have a look at|let me look at|let me view|print out|spit out|type out|scan|study|review|summarize|summarise|sum up|explain|describe|present|skim|list the contents of|load|read and summarize|read and explain|throw up|put up|put on screen]",
    ),
    // Verbs for lists.
    (
        'L',
        "[list|list|list|show|show me|print|display|give me|let me see|get|get me|output|enumerate|find|find me|look for|pull up|bring up|name|tell me|see|view|look at|give me a list of|show me a list of|get a list of|make a list of|print a list of|i want a list of|list out|list up|search for|write out|give us|provide|check for|locate]",
    ),
    // Everywhere below.
    (
        'W',
        "[recursively|recursively|in all subdirectories|in all subfolders|in every subdirectory|including subdirectories|including all subdirectories|including subfolders|with subdirectories|anywhere|everywhere|in the whole project|in the entire project|in the whole repo|across the project|across the whole project|throughout the project|throughout the repo|at any depth|at every level|in all folders|in all directories|in any folder|in any subdirectory|in every folder|, recursively|(recursively)|in this project and its subfolders|here and below|and below|in the whole tree|in the full tree|in any directory|all over the project|in the complete project|all the way down]",
    ),
    // Verbs for a change.
    (
        'C',
        "[replace|replace|replace|replace|change|change|change|swap|rename|turn|substitute|switch|edit|modify|update|convert|correct|fix|alter]",
    ),
    ('B', "[with|with|with|to|to|to|by|by|for|into|->|=>]"),
    // Places of a change.
    ('I', "[in|in|in|in|in|inside|within|of|from]"),
    (
        'Q',
        "[everywhere|throughout|all over|wherever it appears|wherever it occurs|each time it appears|globally|at every place|in all places|every time]",
    ),
    // Questions that go on with `changing` or `reading`.
    (
        'G',
        "[would you mind|would you mind|do you mind|mind|how about|what about|what do you think about|could i bother you with|are you ok with|would you be fine with|is there a chance of you|would you consider]",
    ),
];

/// One phrasing of a pattern, its slots still in it.
pub fn expand(draw: &mut Draw, pattern: &str) -> String {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(['[', '$']) {
        text += &rest[..at];
        if rest[at..].starts_with('$') {
            let key = rest[at + 1..].chars().next().unwrap_or_default();
            let phrase = PHRASES.iter().find(|(known, _)| *known == key).map_or("", |(_, phrase)| phrase);
            assert!(!phrase.is_empty(), "no phrase ${key} for {pattern}");
            text += &expand(draw, phrase);
            rest = &rest[at + 2..];
        } else {
            let (choices, after) = alternatives(&rest[at + 1..]);
            let choice = draw.pick(&choices);
            text += &expand(draw, choice);
            rest = after;
        }
    }
    text + rest
}

/// The choices up to the bracket that closes them, and what follows it.
fn alternatives(text: &str) -> (Vec<&str>, &str) {
    let (mut choices, mut from, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth > 0 => depth -= 1,
            ']' => {
                choices.push(&text[from..at]);
                return (choices, &text[at + 1..]);
            }
            '|' if depth == 0 => {
                choices.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    panic!("a bracket is not closed: {text}")
}

/// The parts of a request, in order.
#[derive(Clone, Copy)]
pub struct Phrasings {
    /// Start with a verb as in `show {f}`.
    pub commands: &'static [&'static str],
    /// Start with a question word.
    pub questions: &'static [&'static str],
    /// Stand as they are.
    pub statements: &'static [&'static str],
}

impl Phrasings {
    /// A whole request with its slots. What ends with `{u}` or a block has text up to its end,
    /// and nothing follows it.
    pub fn draw(&self, draw: &mut Draw) -> String {
        // Where there are many statements, they are the more usual.
        let many = match self.statements.len() {
            0 => 0,
            count => 14 + u32::try_from(count / 3).unwrap_or(0),
        };
        let few = match self.questions.len() {
            0 => 0,
            1..5 => 12,
            _ => 20,
        };
        let weights = [(if self.commands.is_empty() { 0 } else { 64 }, 0), (few, 1), (many.min(36), 2)];
        let (before, core, question) = match draw.weighted(&weights) {
            0 => {
                let before = if draw.chance(50) { String::new() } else { picked(draw, BEFORE_COMMANDS) };
                let question = [
                    "can",
                    "could",
                    "would",
                    "will",
                    "is it",
                    "is there",
                    "do you",
                    "are you",
                    "any chance",
                    "may i",
                    "might i",
                ]
                .iter()
                .any(|start| before.starts_with(start));
                (before, picked(draw, self.commands), question)
            }
            1 => {
                let core = picked(draw, self.questions);
                // `tell me can I` is not said.
                let open = [
                    "can ",
                    "could ",
                    "may ",
                    "do ",
                    "does ",
                    "is ",
                    "are ",
                    "would ",
                    "will ",
                    "should",
                    "mind ",
                    "how about ",
                    "what about ",
                    "what do you think ",
                    "why not ",
                    "what if ",
                    "isn't ",
                    "might ",
                    "did ",
                    "have ",
                ]
                .iter()
                .any(|start| core.starts_with(start));
                let before = match draw.between(0, 99) {
                    0..62 => String::new(),
                    _ if open => draw
                        .pick(&[
                            "so ",
                            "hey, ",
                            "hi, ",
                            "ok, ",
                            "and ",
                            "question: ",
                            "please, ",
                            "sorry, ",
                            "kontekst, ",
                            "well, ",
                            "now, ",
                        ])
                        .to_owned(),
                    _ => picked(draw, BEFORE_QUESTIONS),
                };
                (before, core, true)
            }
            _ => (String::new(), picked(draw, self.statements), false),
        };
        let mut text = before + &core;
        let open = text.ends_with("{u}") || text.ends_with("```") || text.ends_with("\nEOF");
        let closed = text.ends_with(['?', '.', '!']);
        if question && !open && !closed && draw.chance(70) {
            text.push('?');
        } else if !open && !closed && draw.chance(32) {
            text += draw.pick(AFTER);
        }
        let mut text = cased(draw, text);
        if draw.chance(4) {
            text = format!("{} {text}", draw.pick(FIRST));
        }
        if !open && draw.chance(3) {
            let stop = if text.ends_with(['.', '?', '!']) { "" } else { "." };
            text = format!("{text}{stop} {}", draw.pick(LAST));
        }
        noisy(draw, &text)
    }
}

fn picked(draw: &mut Draw, patterns: &[&str]) -> String {
    let pattern = draw.pick(patterns);
    expand(draw, pattern)
}

fn cased(draw: &mut Draw, text: String) -> String {
    if text.starts_with('{') || draw.chance(55) { text } else { super::draw::capital(&text) }
}

/// With what fingers do to it: a wrong letter, no apostrophe, all capitals. Slots stay as they are.
pub fn noisy(draw: &mut Draw, text: &str) -> String {
    let upper = draw.chance(2);
    let typo = draw.chance(7);
    let bare = draw.chance(8);
    // As telegrams and some languages have it.
    let clipped = draw.chance(3);
    let spaced = draw.chance(1);
    if !upper && !typo && !bare && !clipped && !spaced {
        return text.to_owned();
    }
    let mut parts: Vec<(bool, String)> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let end = rest[at..].find('}').map_or(rest.len(), |end| at + end + 1);
        parts.push((false, rest[..at].to_owned()));
        parts.push((true, rest[at..end].to_owned()));
        rest = &rest[end..];
    }
    parts.push((false, rest.to_owned()));
    for (_, part) in parts.iter_mut().filter(|(slot, _)| !slot) {
        if bare {
            *part = part.replace('\'', "");
        }
        if clipped {
            *part = part.replace(" the ", " ");
        }
        if spaced {
            *part = part.replacen(' ', "  ", 1);
        }
        if upper {
            *part = part.to_uppercase();
        }
    }
    if typo {
        let long: Vec<usize> = (0..parts.len()).filter(|&at| !parts[at].0 && parts[at].1.len() > 3).collect();
        if !long.is_empty() {
            let at = draw.pick(&long);
            parts[at].1 = mistyped(draw, &parts[at].1);
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

fn mistyped(draw: &mut Draw, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let inner: Vec<usize> = (1..chars.len() - 1)
        .filter(|&at| chars[at - 1..=at + 1].iter().all(char::is_ascii_alphabetic))
        .collect();
    if inner.is_empty() {
        return text.to_owned();
    }
    let at = draw.pick(&inner);
    match draw.between(0, 3) {
        0 => chars.swap(at, at + 1),
        1 => {
            chars.remove(at);
        }
        2 => chars.insert(at, chars[at]),
        _ => chars[at] = char::from(draw.pick(b"abcdefghijklmnopqrstuvwxyz")),
    }
    chars.into_iter().collect()
}

/// The request with its slots filled. Texts that look like slots are not looked at again.
pub fn filled(text: &str, slots: &[(&str, &str)]) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        done += &rest[..at];
        let end = rest[at..].find('}').map_or(rest.len(), |end| at + end);
        let name = &rest[at + 1..end];
        let value = slots.iter().find(|(slot, _)| *slot == name);
        done += value.unwrap_or_else(|| panic!("no {{{name}}} for {text}")).1;
        rest = &rest[end + 1..];
    }
    done + rest
}
