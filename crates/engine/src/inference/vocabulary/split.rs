//! Splits text into words before byte-level BPE.
//!
//! `tokenizer.ggml.pre` names the pattern. The patterns are those of llama.cpp, except that `\s+(?!\S)` at their end is
//! `\s+`, so that they run in linear time on any text. What the look-ahead means is done by hand: white space before a
//! word leaves its last character to the word.

use regex::Regex;

use crate::EngineError;

const LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";
const QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]*[\p{L}&&[^A-Z]]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]+[\p{L}&&[^A-Z]]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]*[\p{L}&&[^A-Z]]+|[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]+[\p{L}&&[^A-Z]]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+";
const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|]+";

/// Splits text into words.
pub(super) struct Split {
    /// Each splits what the patterns before it left.
    patterns: Vec<Regex>,
    /// A word that is a token is not split further.
    pub whole_words: bool,
    pub adds_bos: bool,
}

impl Split {
    pub(super) fn new(pre: &str) -> Result<Self, EngineError> {
        let (patterns, whole_words, adds_bos): (&[&str], _, _) = match pre {
            "default" => (&[PUNCTUATION, GPT2, r"\p{N}+", "[0-9][0-9][0-9]"], false, false),
            "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "pixtral" | "lfm2" => (&[LLAMA3], true, true),
            "dbrx" | "smaug-bpe" => (&[LLAMA3], false, false),
            "qwen2" | "deepseek-r1-qwen" | "megrez" => (&[QWEN2], false, false),
            "gpt-2" | "gpt2" | "phi-2" | "mpt" | "olmo" | "jina-es" | "jina-de" | "trillion"
            | "granite-docling" => (&[GPT2], false, false),
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" => {
                (&[r"\p{N}", GPT2], false, false)
            }
            "gpt-4o" | "llama4" => (&[GPT4O], false, false),
            "tekken" => (&[TEKKEN], true, true),
            other => {
                return Err(EngineError::Unsupported(format!("text cut into words the way of {other:?}")));
            }
        };
        let patterns =
            patterns.iter().map(|pattern| Regex::new(pattern).expect("it is one of ours")).collect();
        Ok(Self { patterns, whole_words, adds_bos })
    }

    pub(super) fn words<'a>(&self, text: &'a str, each: &mut dyn FnMut(&'a str)) {
        cut(&self.patterns, text, each);
    }
}

fn cut<'a>(patterns: &[Regex], text: &'a str, each: &mut dyn FnMut(&'a str)) {
    let Some((pattern, others)) = patterns.split_first() else { return each(text) };
    let mut rest = 0;
    while rest < text.len() {
        let Some(found) = pattern.find_at(text, rest) else { break };
        if found.start() > rest {
            cut(others, &text[rest..found.start()], each);
        }
        let end = without_last_space(pattern, text, found.as_str(), found.end());
        cut(others, &text[found.start()..end], each);
        rest = end;
    }
    if rest < text.len() {
        cut(others, &text[rest..], each);
    }
}

/// Returns where `\s+(?!\S)` would have ended, for a match of the `\s+` in its place.
fn without_last_space(pattern: &Regex, text: &str, word: &str, end: usize) -> usize {
    let mut backwards = word.char_indices().rev();
    let Some((last, character)) = backwards.next() else { return end };
    let follows = text[end..].chars().next().is_some_and(|next| !next.is_whitespace());
    let lines = pattern.as_str().contains(r"|\s*[\r\n]+|");
    let spaces = pattern.as_str().ends_with(r"|\s+") && word.chars().all(char::is_whitespace);
    // `\s*[\r\n]+` comes before `\s+` and takes its match whole.
    if last > 0 && follows && spaces && !(lines && matches!(character, '\r' | '\n')) {
        return end - word.len() + last;
    }
    end
}
