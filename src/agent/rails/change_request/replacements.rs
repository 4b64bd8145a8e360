//! Reads from a prompt which text is to be replaced at all its places, and by which.
//!
//! A run that ends while the old text still stands fails, so a sentence that could be meant in another way asks for no such
//! replacement: each of its words has to be known.

use super::{MAX_INSTRUCTION, sentences, words::is_file_name};

/// A text that is to be replaced by another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Replacement {
    pub(in crate::agent) old: String,
    pub(in crate::agent) new: String,
    pub(in crate::agent) place: Place,
}

/// The files in which a text is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) enum Place {
    Everywhere,
    /// The files of these names.
    Files(Vec<String>),
    /// The prompt does not say where: the files that the run has changed.
    ChangedFiles,
}

const RENAME: &str = "rename";
const VERBS: &[&str] = &[RENAME, "replace", "change", "ersetze", "ändere"];
const SEPARATORS: &[&str] = &["to", "with", "by", "into", "durch", "zu"];

/// Words before the old text that say that all its places are meant.
const QUANTIFIERS: &[&str] = &["every", "all", "each", "any", "alle", "jedes", "jeden", "jede"];

/// Words before a text that say that it is meant literally.
const NOUNS: &[&str] = &[
    "attribute",
    "class",
    "constant",
    "field",
    "function",
    "identifier",
    "instance",
    "instances",
    "key",
    "method",
    "name",
    "occurrence",
    "occurrences",
    "parameter",
    "property",
    "setting",
    "string",
    "struct",
    "symbol",
    "type",
    "variable",
    "word",
    "funktion",
    "klasse",
    "konstante",
    "methode",
    "vorkommen",
    "wort",
];

const FILL_WORDS: &[&str] = &["the", "of", "its", "das", "die", "den", "der", "von"];

/// Words around a replacement that say no more than where it is to be made.
const PLACE_WORDS: &[&str] = &[
    "across",
    "all",
    "also",
    "and",
    "appears",
    "base",
    "both",
    "code",
    "codebase",
    "directory",
    "each",
    "entire",
    "every",
    "everywhere",
    "file",
    "files",
    "folder",
    "here",
    "in",
    "is",
    "it",
    "its",
    "now",
    "occurs",
    "of",
    "places",
    "please",
    "project",
    "repo",
    "repository",
    "source",
    "sources",
    "stands",
    "that",
    "the",
    "them",
    "this",
    "throughout",
    "use",
    "used",
    "uses",
    "where",
    "wherever",
    "whole",
    "working",
    "allen",
    "bitte",
    "datei",
    "dateien",
    "der",
    "ganzen",
    "gesamten",
    "im",
    "projekt",
    "und",
    "überall",
];

/// Words that mean all files by themselves, and words that do so together with one of the other list.
const EVERYWHERE: &[&str] = &["everywhere", "throughout", "across", "wherever", "überall"];
const WHOLE: &[&str] = &["all", "every", "each", "whole", "entire", "allen", "ganzen", "gesamten"];

/// Words that make an exception somewhere in the prompt.
const EXCEPTIONS: &[&str] = &[
    "but",
    "don't",
    "except",
    "excluding",
    "ignore",
    "keep",
    "leave",
    "never",
    "not",
    "only",
    "other",
    "skip",
    "unless",
    "without",
    "außer",
    "lass",
    "lasse",
    "nicht",
    "nur",
    "ohne",
];

/// Returns the replacements that the prompt asks for at all places of a text, in its order.
pub(in crate::agent) fn replacements(prompt: &str) -> Vec<Replacement> {
    let prompt = prompt.trim();
    // Data from stdin comes first, with an empty line behind it. The place may be in it.
    if prompt.len() > MAX_INSTRUCTION || prompt.contains("\n\n") || prompt.contains("```") {
        return Vec::new();
    }
    let sentences: Vec<Vec<Token>> = sentences(prompt).into_iter().map(Token::all).collect();
    let has_exception = sentences.iter().any(|sentence| {
        sentence.iter().any(|token| token.is_one_of(EXCEPTIONS))
            && !sentence.iter().any(|token| token.is_one_of(&["else", "anderes", "sonst"]))
    });
    if has_exception {
        return Vec::new();
    }
    sentences.iter().filter_map(|sentence| replacement(sentence)).collect()
}

/// Returns the replacements of a prompt of which each sentence asks for one. None if there is a sentence more.
pub(in crate::agent) fn only_replacements(prompt: &str) -> Vec<Replacement> {
    let replacements = replacements(prompt);
    let count = sentences(prompt.trim()).into_iter().filter(|sentence| !sentence.is_empty()).count();
    if replacements.len() == count { replacements } else { Vec::new() }
}

fn replacement(sentence: &[Token]) -> Option<Replacement> {
    let verb = sentence.iter().position(|token| token.is_one_of(VERBS))?;
    let (before, rest) = (&sentence[..verb], &sentence[verb + 1..]);
    let separator = rest.iter().position(|token| token.is_one_of(SEPARATORS))?;
    let (old, words) = rest[..separator].split_last()?;
    let target = &rest[separator + 1..];
    let at = target.iter().position(|token| !token.is_one_of(FILL_WORDS) && !token.is_one_of(NOUNS))?;
    let (new, after) = (&target[at], &target[at + 1..]);
    let all_known =
        words.iter().all(|word| [QUANTIFIERS, NOUNS, FILL_WORDS].iter().any(|known| word.is_one_of(known)));
    if !all_known || !new.is_literal() || !old.is_literal() {
        return None;
    }
    let renames = sentence[verb].is_one_of(&[RENAME]);
    let is_named = words.iter().any(|word| word.is_one_of(NOUNS));
    let is_single = renames && !old.text.ends_with('s');
    let is_word = old.text.chars().count() > 1 && (is_named || is_single || old.looks_like_code());
    if !old.quoted && !is_word {
        return None;
    }
    let around = || before.iter().chain(after);
    if !around().all(|token| token.is_file_name() || token.is_one_of(PLACE_WORDS)) {
        return None;
    }
    let place = place(before, after, words.iter().any(|word| word.is_one_of(QUANTIFIERS)), renames)?;
    let (old, new) = (old.without_parentheses(), new.without_parentheses());
    (old != new && !is_file_name(old)).then(|| Replacement {
        old: old.to_owned(),
        new: new.to_owned(),
        place,
    })
}

/// Returns the place of a replacement. A text that is to be replaced in one file without a word of all its places may be
/// meant once, unless it is a name.
fn place(before: &[Token], after: &[Token], all_places: bool, renames: bool) -> Option<Place> {
    let files: Vec<String> = before
        .iter()
        .chain(after)
        .filter(|token| token.is_file_name())
        .map(|token| token.text.trim_start_matches("./").to_owned())
        .collect();
    let everywhere = [before, after].into_iter().any(|words| {
        words.iter().any(|word| word.is_one_of(EVERYWHERE))
            || words.windows(2).any(|pair| pair[0].is_one_of(WHOLE) && !pair[1].is_one_of(&["it", "of"]))
    });
    match (files.is_empty(), everywhere, all_places) {
        (false, everywhere, all) if everywhere || all || renames => Some(Place::Files(files)),
        (true, true, _) => Some(Place::Everywhere),
        (true, false, true) => Some(Place::ChangedFiles),
        _ => None,
    }
}

/// A word, or a text in quotes.
struct Token {
    text: String,
    lower: String,
    quoted: bool,
}

impl Token {
    /// Splits a sentence. Punctuation between the tokens is dropped.
    fn all(sentence: &str) -> Vec<Self> {
        let mut tokens = Vec::new();
        let mut rest = sentence.trim_start();
        while !rest.is_empty() {
            let (text, quoted, after) = quoted_text(rest).unwrap_or_else(|| {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?']), false, &rest[end..])
            });
            if !text.is_empty() {
                tokens.push(Self { text: text.to_owned(), lower: text.to_lowercase(), quoted });
            }
            rest = after.trim_start();
        }
        tokens
    }

    fn is_one_of(&self, words: &[&str]) -> bool {
        !self.quoted && words.contains(&&*self.lower)
    }

    fn is_file_name(&self) -> bool {
        is_file_name(&self.text)
    }

    /// Returns true for a text in quotes, and for a word that is no part of the sentence around it.
    fn is_literal(&self) -> bool {
        let is_name = |c: char| c.is_alphanumeric() || "_-.:/@$#()".contains(c);
        let generic =
            ["something", "lowercase", "uppercase", "snake_case", "camelcase", "kebab-case", "a", "an"];
        let lists = [QUANTIFIERS, NOUNS, FILL_WORDS, PLACE_WORDS, &generic];
        self.quoted
            || self.text.chars().all(is_name)
                && self.text.contains(char::is_alphanumeric)
                && !lists.iter().any(|list| self.is_one_of(list))
    }

    /// Returns true for a word that no language has: it has a digit, an underscore, or a capital after the first letter.
    fn looks_like_code(&self) -> bool {
        let mut chars = self.text.chars();
        chars.next();
        self.text.contains(|c: char| c.is_ascii_digit() || "_:()".contains(c))
            || chars.any(char::is_uppercase)
    }

    /// Returns the name of a function that is written as `name()`.
    fn without_parentheses(&self) -> &str {
        if self.text.len() > 2 { self.text.trim_end_matches("()") } else { &self.text }
    }
}

/// Returns the text in the quotes with which `rest` begins, and what follows it and its punctuation.
fn quoted_text(rest: &str) -> Option<(&str, bool, &str)> {
    let open = rest.chars().next()?;
    let close = match open {
        '"' | '\'' | '`' => open,
        '“' => '”',
        '‘' => '’',
        '„' => '“',
        '«' => '»',
        _ => return None,
    };
    let inner = &rest[open.len_utf8()..];
    inner.match_indices(close).find_map(|(end, _)| {
        let after = &inner[end + close.len_utf8()..];
        let next = after.trim_start_matches(['.', ',', ';', ':', '!', '?']);
        let ends = next.is_empty() || next.starts_with(char::is_whitespace);
        (ends && end > 0).then_some((&inner[..end], true, next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the replacement in the form `old>new @place`.
    fn read(prompt: &str) -> String {
        let text = |Replacement { old, new, place }| match place {
            Place::Everywhere => format!("{old}>{new} @all"),
            Place::Files(files) => format!("{old}>{new} @{}", files.join(",")),
            Place::ChangedFiles => format!("{old}>{new} @changed"),
        };
        replacements(prompt).into_iter().map(text).collect::<Vec<_>>().join(" & ")
    }

    #[test]
    fn replacements_at_all_places_are_read() {
        for (prompt, expected) in [
            ("rename calc to subtotal in all files", "calc>subtotal @all"),
            ("Rename the function calc to subtotal, everywhere it is used.", "calc>subtotal @all"),
            ("Please rename `load()` to `load_all()` across the project.", "load>load_all @all"),
            ("Rename the constant MAX to MAX_ITEMS in all files.", "MAX>MAX_ITEMS @all"),
            ("rename the variable x1 to y in the whole code base", "x1>y @all"),
            ("Rename total to sum in f.txt", "total>sum @f.txt"),
            ("Rename the function `load` to `read` in store.py and main.py", "load>read @store.py,main.py"),
            ("In story.txt, replace every \"Tom\" with \"Max\".", "Tom>Max @story.txt"),
            ("Replace every \"a, b, c\" by 'd' everywhere.", "a, b, c>d @all"),
            ("replace all occurrences of foo with bar in src/a.c", "foo>bar @src/a.c"),
            ("Replace each TODO_1 with “done”", "TODO_1>done @changed"),
            ("change `8080` to `9000` everywhere. Do not change anything else.", "8080>9000 @all"),
            ("Ersetze foo_bar durch baz in allen Dateien", "foo_bar>baz @all"),
            ("Ersetze bitte jedes „alt“ durch „neu“ überall.", ""),
            ("Ersetze jedes „alt“ durch „neu“ überall.", "alt>neu @all"),
            ("rename a1 to b1 in all files. Rename c1 to d1 in all files.", "a1>b1 @all & c1>d1 @all"),
        ] {
            assert_eq!(read(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn sentences_that_may_mean_less_are_left_alone() {
        for prompt in [
            "",
            "rename foo to bar",
            "rename the function foo to bar",
            "rename a.txt to b.txt in all files",
            "rename it to foo everywhere",
            "rename variables to snake_case everywhere",
            "rename columns to english in all files",
            "rename w to width in the function area in shapes.py",
            "rename width in the function area to w in shapes.py",
            "rename calc to subtotal everywhere except in the tests",
            "rename calc to subtotal in all files. Leave the copies alone.",
            "rename calc to subtotal in all files, but not in comments",
            "rename calc to subtotal in all Python files",
            "rename a1 to b1 and c1 to d1 everywhere",
            "replace foo with bar in a.c",
            "change 8080 to 9000 in config.toml",
            "change apples to pears in notes.txt",
            "replace all tabs with spaces in Makefile",
            "replace every comma with a semicolon in all files",
            "replace all images by links in all files",
            "replace the first \"foo\" with \"bar\" in all files",
            "replace all prints with logging in main.py",
            "set the port to 9000 in all files",
            "data\n\nreplace every \"foo\" with \"bar\"",
            "Ersetze alle Tabulatoren durch Leerzeichen in allen Dateien",
            "how do I rename calc to subtotal in all files of my editor?",
        ] {
            assert_eq!(read(prompt), "", "{prompt}");
        }
    }
}
