//! Keeps the tokens that steer a model apart from text that only looks like them: what a file or a web page
//! says cannot end a message or begin another.

use std::collections::BTreeSet;

use minijinja::{Value, value::ValueKind};

/// Stands within a text that would otherwise be taken for such a token. No character, by Unicode's own rule,
/// and so in no text that means anything.
const MARK: char = '\u{fdd0}';

/// Knows the texts of those tokens.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The longest first, so that no token hides in a longer one.
    tokens: Vec<String>,
    first: BTreeSet<u8>,
}

/// A piece of a rendered prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The number of a token in the list that the guard was made of.
    Control(&'a str),
    Text(String),
}

impl Guard {
    pub fn new(mut tokens: Vec<String>) -> Self {
        tokens.retain(|token| token.chars().count() > 1);
        tokens.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        tokens.dedup();
        let first = tokens.iter().map(|token| token.as_bytes()[0]).collect();
        Self { tokens, first }
    }

    /// The next token in `text`, and where it begins.
    fn next(&self, text: &str) -> Option<(usize, &str)> {
        let candidates = text.bytes().enumerate().filter(|(_, byte)| self.first.contains(byte));
        candidates.into_iter().find_map(|(at, _)| {
            let token =
                self.tokens.iter().find(|token| text.as_bytes()[at..].starts_with(token.as_bytes()))?;
            Some((at, token.as_str()))
        })
    }

    /// Marks what looks like a token in a text of somebody's.
    fn mark(&self, text: &str) -> Option<String> {
        if !text.contains(MARK) && self.next(text).is_none() {
            return None;
        }
        let mut marked = String::with_capacity(text.len() + 16);
        let text = text.replace(MARK, "\u{fffd}");
        let mut rest = text.as_str();
        while let Some((at, _)) = self.next(rest) {
            let inside = at + rest[at..].chars().next().map_or(1, char::len_utf8);
            marked.push_str(&rest[..inside]);
            marked.push(MARK);
            rest = &rest[inside..];
        }
        marked.push_str(rest);
        Some(marked)
    }

    /// The same value with every text in it marked.
    pub fn mark_all(&self, value: &Value) -> Value {
        match value.kind() {
            ValueKind::String => {
                let marked = value.as_str().and_then(|text| self.mark(text));
                marked.map_or_else(|| value.clone(), Value::from)
            }
            ValueKind::Seq => {
                value.try_iter().into_iter().flatten().map(|item| self.mark_all(&item)).collect()
            }
            ValueKind::Map => {
                let keys = value.try_iter().into_iter().flatten();
                let entries = keys.map(|key| {
                    let item = value.get_item(&key).unwrap_or_default();
                    (self.mark_all(&key), self.mark_all(&item))
                });
                Value::from_pairs(entries)
            }
            _ => value.clone(),
        }
    }

    /// Takes a rendered text apart.
    pub fn pieces<'a>(&'a self, rendered: &str) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        let text = |text: &str| Piece::Text(text.replace(MARK, ""));
        let mut rest = rendered;
        while let Some((at, token)) = self.next(rest) {
            if at > 0 {
                pieces.push(text(&rest[..at]));
            }
            pieces.push(Piece::Control(token));
            rest = &rest[at + token.len()..];
        }
        if !rest.is_empty() {
            pieces.push(text(rest));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    fn guard() -> Guard {
        Guard::new(["<|end|>", "<|end|>x", "[A]", "a"].map(str::to_owned).to_vec())
    }

    #[test]
    fn a_text_that_looks_like_a_token_stays_a_text() {
        let guard = guard();
        for text in ["<|end|>", "a <|end|>[A]<|end|>x b", "<<|end|>", "\u{fdd0}<|end|>", "[A", "é[A]", ""] {
            let marked = guard.mark_all(&Value::from(text)).to_string();
            let pieces = guard.pieces(&format!("[A]{marked}<|end|>"));
            let mut wanted = vec![Piece::Control("[A]")];
            let whole = text.replace(MARK, "\u{fffd}");
            wanted.extend((!text.is_empty()).then_some(Piece::Text(whole)));
            wanted.push(Piece::Control("<|end|>"));
            assert_eq!(pieces, wanted, "{text}");
        }
    }

    #[test]
    fn values_are_marked_in_all_their_parts_and_keep_their_order() {
        let value = context! { z => vec!["<|end|>"], b => 1, a => context! { k => "[A]" } };
        let marked = guard().mark_all(&value);
        let text = |value: Value| value.to_string().replace(MARK, "~");
        assert_eq!(text(marked.get_attr("z").unwrap().get_item(&0.into()).unwrap()), "<~|end|>");
        assert_eq!(text(marked.get_attr("a").unwrap().get_attr("k").unwrap()), "[~A]");
        let keys: Vec<String> = marked.try_iter().unwrap().map(|key| key.to_string()).collect();
        assert_eq!(keys, ["z", "b", "a"]);
    }
}
