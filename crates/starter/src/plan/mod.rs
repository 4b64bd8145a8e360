//! Reads from a request, without the model, what can be vouched for: a change that it gives in full, and what it asks about
//! piped data by count or by place.
//!
//! A change is made only if every word of the request is understood, see `words`. So a file is never filled with a piece of a
//! request that means something else. Everything that is read from a request here is exact; for everything else the
//! model chooses among tools that only read, and among a few sentences.

mod bare;
mod change;
mod form;
mod piped;
mod sentences;
mod several;
#[cfg(test)]
mod tests;
mod tokens;
mod words;

use self::tokens::{Kind, Token, tokens};
pub(crate) use self::{
    piped::{Picked, Piped},
    sentences::{NAME, ONE_THING, UNCLEAR},
};
use crate::sentences::DECLINED;

/// The action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Change(Change),
    Say(String),
    /// The model answers: it reads something, or declines.
    AskModel,
}

/// A change to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Write {
        path: String,
        content: String,
        /// A file that exists is replaced.
        replaces: bool,
    },
    Edit {
        path: String,
        old: String,
        new: String,
        /// The number of the occurrence among several, from 1, or 0 for all.
        occurrence: Option<u32>,
    },
}

impl Plan {
    pub(crate) fn new(request: &str) -> Self {
        let piped = Piped::new(request);
        let data = piped.as_ref().map(|piped| piped.data);
        let instruction = piped.as_ref().map_or(request, |piped| piped.instruction);
        let tokens = tokens(instruction).unwrap_or_default();
        if has_unclear_name(&tokens) {
            return Self::decline(NAME);
        }
        // Piped data are never read as a request, even if they look like one.
        let is_fenced = request.trim_end().ends_with("```");
        let change = match &piped {
            Some(_) if is_fenced => change::change(request, None),
            _ => change::change(instruction, data),
        };
        if let Some(change) = change {
            return Self::Change(change);
        }
        if begins_with_a_change(&tokens) {
            return Self::decline(DECLINED);
        }
        if several::is_several(&tokens) {
            return Self::decline(ONE_THING);
        }
        let names = tokens.iter().any(|token| token.is_path() || token.is_url());
        piped.filter(|_| !names).and_then(|piped| piped.answer()).map_or(Self::AskModel, Self::Say)
    }

    fn decline(sentence: &str) -> Self {
        Self::Say(sentence.to_owned())
    }
}

impl Change {
    fn write(path: &str, content: String, replaces: bool) -> Self {
        Self::Write { path: path.to_owned(), content, replaces }
    }

    /// Returns `None` if nothing would change.
    fn edit(path: &str, old: &str, new: &str, occurrence: Option<u32>) -> Option<Self> {
        let [path, old, new] = [path, old, new].map(str::to_owned);
        (!old.is_empty() && old != new).then_some(Self::Edit { path, old, new, occurrence })
    }
}

fn begins_with_a_change(mut tokens: &[Token<'_>]) -> bool {
    while let Some((_, length)) = words::part(tokens).filter(|(letter, _)| "_?".contains(*letter)) {
        tokens = &tokens[length..];
    }
    tokens.first().is_some_and(|first| first.kind == Kind::Word && words::is_never_done(first.text))
}

/// Returns true if a file is named such as `my file.txt`: with or without the word before it.
fn has_unclear_name(tokens: &[Token<'_>]) -> bool {
    tokens.windows(2).any(|pair| {
        let before = pair[0].text.to_lowercase();
        let follows = pair[0].end + 1 == pair[1].start && pair[1].kind == Kind::Word;
        let is_adjective = ["my", "new", "old"].contains(&before.as_str());
        let stem = pair[1].text.split('.').next().unwrap_or_default().to_lowercase();
        follows && is_adjective && pair[1].is_path() && ["file", "document"].contains(&stem.as_str())
    })
}

/// The spans of names with spaces in a request, and of quoted texts. A path may not begin or end within one.
pub(crate) fn whole_names(request: &str) -> Vec<std::ops::Range<usize>> {
    let tokens = tokens(request).unwrap_or_default();
    let spaced = |token: &&Token<'_>| token.is_path() && token.text.contains(' ');
    tokens
        .iter()
        .filter(spaced)
        .map(|token| {
            let quote = (token.end - token.start - token.text.len()) / 2;
            let start = token.start + quote;
            start..start + token.text.len()
        })
        .collect()
}
