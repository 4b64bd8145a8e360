//! The words of the rule.

/// Verbs that change what is there.
pub(super) const CHANGE: &[&str] = &[
    "bump",
    "change",
    "comment",
    "correct",
    "decrease",
    "delete",
    "disable",
    "edit",
    "enable",
    "fix",
    "increase",
    "lower",
    "modify",
    "move",
    "raise",
    "refactor",
    "remove",
    "rename",
    "repair",
    "replace",
    "rewrite",
    "set",
    "swap",
    "switch",
    "turn",
    "uncomment",
    "update",
    "ändere",
    "ersetze",
    "korrigiere",
    "behebe",
    "entferne",
    "ergänze",
];

/// Verbs that fill what is empty.
pub(super) const FILL: &[&str] = &["complete", "fill", "finish", "implement"];

/// Verbs that make something new, which may be no file.
pub(super) const CREATE: &[&str] = &["create", "generate", "make", "erstelle"];

/// Verbs that need a destination.
pub(super) const PUT: &[&str] = &["dump", "export", "put", "save", "store"];

pub(super) const COPY: &[&str] = &["copy", "duplicate"];

/// The first words of questions.
pub(super) const QUESTION: &[&str] = &[
    "am",
    "are",
    "can",
    "could",
    "did",
    "do",
    "does",
    "had",
    "has",
    "have",
    "how",
    "is",
    "may",
    "might",
    "shall",
    "should",
    "was",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "would",
    "wie",
    "welche",
    "welcher",
    "welches",
    "wer",
    "wo",
    "wann",
    "warum",
    "wieso",
    "ist",
    "sind",
    "kann",
    "kannst",
    "könntest",
    "hat",
    "gibt",
];

/// The first words of sentences that want to be told something.
pub(super) const EXPLAIN: &[&str] = &[
    "compare",
    "define",
    "describe",
    "discuss",
    "explain",
    "give",
    "imagine",
    "if",
    "outline",
    "print",
    "propose",
    "say",
    "show",
    "suggest",
    "summarise",
    "summarize",
    "teach",
    "tell",
    "translate",
];

/// Words that mean files and code of the project, behind "the", "all", "every" or "each".
pub(super) const CODE_TARGETS: &[&str] = &[
    "changelog",
    "class",
    "code",
    "codebase",
    "config",
    "configuration",
    "file",
    "files",
    "function",
    "functions",
    "makefile",
    "method",
    "methods",
    "module",
    "modules",
    "project",
    "readme",
    "repo",
    "repository",
    "script",
    "source",
    "sources",
    "test",
    "tests",
];

/// Words for a file that is to be created.
pub(super) const KINDS_OF_FILE: &[&str] = &["file", "script", "module"];

/// Things that are written into a file of code or text.
pub(super) const KINDS_OF_CODE: &[&str] = &[
    "class",
    "comment",
    "comments",
    "constant",
    "docstring",
    "docstrings",
    "entry",
    "field",
    "function",
    "heading",
    "hints",
    "import",
    "key",
    "line",
    "method",
    "section",
    "test",
    "tests",
    "variable",
];

/// Words after which a verb is an imperative.
const BEFORE_IMPERATIVE: &[&str] = &[
    "also", "and", "bitte", "dann", "finally", "first", "just", "kindly", "next", "now", "please", "then",
    "und",
];

/// The extensions of files that a prompt may name.
const EXTENSIONS: &[&str] = &[
    "adoc",
    "bash",
    "bat",
    "c",
    "cc",
    "cfg",
    "clj",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "csv",
    "cxx",
    "dart",
    "diff",
    "ex",
    "exs",
    "fish",
    "go",
    "gradle",
    "h",
    "hpp",
    "hs",
    "htm",
    "html",
    "ini",
    "ipynb",
    "java",
    "js",
    "json",
    "jsonl",
    "jsx",
    "kt",
    "less",
    "lock",
    "log",
    "lua",
    "m",
    "md",
    "mjs",
    "ml",
    "nix",
    "php",
    "pl",
    "po",
    "properties",
    "proto",
    "ps1",
    "py",
    "pyi",
    "r",
    "rb",
    "rs",
    "rst",
    "sass",
    "scala",
    "scss",
    "sh",
    "sql",
    "srt",
    "svelte",
    "svg",
    "swift",
    "tex",
    "tf",
    "toml",
    "ts",
    "tsv",
    "tsx",
    "txt",
    "vim",
    "vue",
    "xml",
    "yaml",
    "yml",
    "zig",
    "zsh",
];

/// Files that have no extension.
const FILES: &[&str] =
    &["makefile", "dockerfile", "justfile", "readme", "license", "changelog", "contributing", ".gitignore"];

/// A word without the punctuation around it.
pub(super) struct Word {
    pub(super) text: String,
    pub(super) lower: String,
    /// A comma or semicolon follows it.
    pub(super) ends_clause: bool,
    /// The place in the text of the first byte of the word, with the punctuation before it.
    pub(super) at: usize,
}

impl Word {
    pub(super) fn all(text: &str) -> Vec<Self> {
        text.split_whitespace()
            .filter_map(|raw| {
                let is_inside = |c: char| c.is_alphanumeric() || c == '_';
                let word = raw.trim_end_matches(|c| !is_inside(c));
                let word = word.trim_start_matches(|c| !is_inside(c) && !matches!(c, '.' | '/' | '-'));
                let ends_clause = raw.ends_with([',', ';']);
                (!word.is_empty()).then(|| Self {
                    text: word.to_owned(),
                    lower: word.to_lowercase(),
                    ends_clause,
                    // Both are parts of the same string.
                    at: raw.as_ptr() as usize - text.as_ptr() as usize,
                })
            })
            .collect()
    }
}

/// Returns true if an imperative may stand here: at the start, after a comma, or after "please", "and", "you to".
pub(super) fn is_boundary(words: &[Word], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| &words[before]) else { return true };
    let you_to = before.lower == "to" && at >= 2 && words[at - 2].lower == "you";
    before.ends_clause || you_to || BEFORE_IMPERATIVE.contains(&&*before.lower)
}

/// Returns the clauses of a sentence: each begins where an imperative may stand, and not with the name of a file.
pub(super) fn clauses(words: &[Word]) -> Vec<&[Word]> {
    let is_start = |at: &usize| is_boundary(words, *at) && !is_file_name(&words[*at].text);
    let starts: Vec<usize> = (0..words.len()).filter(is_start).collect();
    let ends = starts.iter().skip(1).copied().chain([words.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &words[start..end]).collect()
}

/// The bytes from which on a text is searched for each word instead of being split into its words.
const LONG_TEXT: usize = 4096;

/// Returns true if one of the words, which are in lower case, stands in the text.
pub(in crate::agent::rails) fn has_word(text: &str, words: &[&str]) -> bool {
    if text.len() >= LONG_TEXT && text.is_ascii() {
        return has_word_in_long(&text.to_ascii_lowercase(), words);
    }
    text.split(|c: char| !c.is_alphanumeric()).any(|word| {
        if word.is_ascii() {
            let lower = || word.bytes().map(|byte| byte.to_ascii_lowercase());
            words.iter().any(|known| known.len() == word.len() && known.bytes().eq(lower()))
        } else {
            words.contains(&&*word.to_lowercase())
        }
    })
}

/// Does the same for a text in lower case that has only ASCII characters. For five words in a megabyte it takes a fifth of the
/// time.
fn has_word_in_long(text: &str, words: &[&str]) -> bool {
    let text = text.as_bytes();
    let is_end =
        |at: Option<usize>| at.and_then(|at| text.get(at)).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    words.iter().any(|word| {
        let mut places = memchr::memmem::find_iter(text, word);
        !word.is_empty() && places.any(|at| is_end(at.checked_sub(1)) && is_end(Some(at + word.len())))
    })
}

/// Returns true for the name of a file: one with an extension that files have, or one of the few without.
pub(in crate::agent::rails) fn is_file_name(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let lower = name.to_lowercase();
    if word.contains("://") {
        return false;
    }
    let by_extension = lower
        .rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && EXTENSIONS.contains(&extension));
    by_extension || FILES.contains(&&*lower)
}
