//! Keeps control tokens apart from text that only looks like them, so that the content of a file or a web page cannot end
//! a message or begin another.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use minijinja::{Value, value::ValueKind};

/// Is put into a text that looks like a control token, so that it is not taken for one. Unicode reserves this code point
/// as a noncharacter, so no meaningful text contains it.
const MARK: char = '\u{fdd0}';

/// The texts of the control tokens of a model.
#[derive(Debug)]
pub(super) struct Guard {
    tokens: Vec<String>,
    /// Finds the first of them in a text, and the longest where several begin. `None` if there are none.
    find: Option<AhoCorasick>,
}

/// A part of a rendered prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Segment<'a> {
    /// A control token that the template wrote, by its text.
    Control(&'a str),
    Text(String),
}

impl Guard {
    pub(super) fn new(mut tokens: Vec<String>) -> Self {
        tokens.retain(|token| token.chars().count() > 1);
        // A DFA would take kilobytes for each byte of a token.
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        let find = (!tokens.is_empty()).then(|| {
            let mut builder = AhoCorasick::builder();
            let found = builder.match_kind(MatchKind::LeftmostLongest).kind(kind).build(&tokens);
            found.expect("a vocabulary has no more bytes of control tokens than there are numbers for states")
        });
        Self { tokens, find }
    }

    /// Finds the first control token in `text`, and where it begins.
    fn next(&self, text: &str) -> Option<(usize, &str)> {
        let found = self.find.as_ref()?.find(text)?;
        Some((found.start(), &self.tokens[found.pattern().as_usize()]))
    }

    /// Marks what looks like a control token in `text`. Returns `None` if there is nothing to mark.
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

    /// Marks every text in a value.
    pub(super) fn mark_all(&self, value: &Value) -> Value {
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

    /// Splits a rendered text at its control tokens and removes the marks.
    pub(super) fn segments<'a>(&'a self, rendered: &str) -> Vec<Segment<'a>> {
        let mut segments = Vec::new();
        let text = |text: &str| Segment::Text(text.replace(MARK, ""));
        let mut rest = rendered;
        while let Some((at, token)) = self.next(rest) {
            if at > 0 {
                segments.push(text(&rest[..at]));
            }
            segments.push(Segment::Control(token));
            rest = &rest[at + token.len()..];
        }
        if !rest.is_empty() {
            segments.push(text(rest));
        }
        segments
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
            let segments = guard.segments(&format!("[A]{marked}<|end|>"));
            let mut wanted = vec![Segment::Control("[A]")];
            let whole = text.replace(MARK, "\u{fffd}");
            wanted.extend((!text.is_empty()).then_some(Segment::Text(whole)));
            wanted.push(Segment::Control("<|end|>"));
            assert_eq!(segments, wanted, "{text}");
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
