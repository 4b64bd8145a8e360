//! Turns back a write that would replace a file of which the model knows nothing, or drop most of it, or create one under
//! a name that the model has only guessed. Once each: a model that means it writes again.

use std::collections::{HashMap, HashSet};

use super::{Judgement, Moment, ProposedChange, Rail};
use crate::{
    agent::ledger::Ledger,
    core::{Message, Role},
    tools::Change,
};

/// A shorter file may be dropped, in lines that are not blank.
const MIN_LINES: usize = 3;
/// A write that keeps fewer of the old lines, in percent, drops most of the file.
const MIN_KEPT: usize = 50;
/// A write that keeps at least so many of the old words, in percent, has them in other lines.
const SAME_WORDS: usize = 80;
/// A file of at most this many lines may be written in other words, if it does not get shorter.
const FEW_LINES: usize = 10;

/// Judges the writes of a run.
#[derive(Default)]
pub(super) struct UnreadWrite {
    /// Files of which a write was turned back, and why.
    turned_back: HashSet<(String, Reason)>,
}

/// The kind of a reason against a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reason {
    GuessedName,
    NotRead,
    DropsLines,
}

impl Rail for UnreadWrite {
    fn name(&self) -> &'static str {
        "unread_write"
    }

    fn judge(&mut self, moment: &Moment<'_>, ledger: &Ledger) -> Judgement {
        let Moment::Proposal(ProposedChange { is_whole: true, change, conversation }) = moment else {
            return Judgement::Pass;
        };
        let found = match change.old.as_deref() {
            None => guessed_name(&change.path, ledger, conversation),
            Some(old) => lost_text(&String::from_utf8_lossy(old), change, ledger, conversation),
        };
        match found {
            Some((reason, text)) if self.turned_back.insert((change.path.clone(), reason)) => {
                Judgement::TurnBack(format!("Nothing was written: {text}"))
            }
            _ => Judgement::Pass,
        }
    }
}

/// Returns the reason why a file is not created: the model was told that there is none of this name and which it may mean,
/// and the user did not write this name.
fn guessed_name(path: &str, ledger: &Ledger, conversation: &[&Message]) -> Option<(Reason, String)> {
    let near = ledger.near(path);
    let is_named = |message: &&Message| message.role == Role::User && has_word(&message.content, path);
    if near.is_empty() || conversation.iter().any(is_named) {
        return None;
    }
    let meant = near.join("` or `");
    Some((
        Reason::GuessedName,
        format!("there is no {path}; did you mean `{meant}`? To create {path} all the same, write it again."),
    ))
}

/// Returns true if the text has this path, and not as a part of a longer one.
fn has_word(text: &str, path: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].trim_end_matches("./").chars().next_back();
        let mut after = text[at + path.len()..].chars();
        // A point may end the sentence.
        let ends = match after.next() {
            Some('.') => !after.next().is_some_and(continues),
            next => !next.is_some_and(continues),
        };
        ends && !before.is_some_and(continues)
    })
}

/// Returns the reason why a file is not replaced, and its text.
fn lost_text(
    old: &str,
    change: &Change,
    ledger: &Ledger,
    conversation: &[&Message],
) -> Option<(Reason, String)> {
    let Change { path, new, .. } = change;
    if old.trim().is_empty() || old == new {
        return None;
    }
    let shows =
        |message: &&Message| message.role == Role::User && message.with_context().contains(old.trim());
    if !ledger.knows(path) && !conversation.iter().any(shows) {
        let text = format!(
            "{path} exists already, and you have not read it. To replace it all the same, write it again."
        );
        return Some((Reason::NotRead, text));
    }
    let (kept, all) = kept_parts(lines(old), lines(new));
    let (kept_words, all_words) = kept_parts(words(old), words(new));
    let is_reformatted = kept_words * 100 >= all_words * SAME_WORDS;
    let is_reworded = all <= FEW_LINES && lines(new).count() >= all;
    if all < MIN_LINES || kept * 100 >= all * MIN_KEPT || is_reformatted || is_reworded {
        return None;
    }
    let text = format!(
        "only {kept} of the {all} lines of {path} would be left. If that is what is wanted, write it again; otherwise keep what the \
         request does not speak of."
    );
    Some((Reason::DropsLines, text))
}

/// Returns how many of the old parts are among the new ones, and how many there are.
fn kept_parts<'a>(old: impl Iterator<Item = &'a str>, new: impl Iterator<Item = &'a str>) -> (usize, usize) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for part in new {
        *counts.entry(part).or_default() += 1;
    }
    let (mut kept, mut all) = (0, 0);
    for part in old {
        all += 1;
        if let Some(count @ 1..) = counts.get_mut(part) {
            *count -= 1;
            kept += 1;
        }
    }
    (kept, all)
}

/// Returns the lines that are not blank.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
