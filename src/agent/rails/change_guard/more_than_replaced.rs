//! Turns back a change that makes more than the replacements that the request asks for: told to rename a constant, small models
//! rename modules, too, and change values.

use serde_json::Value;

use super::{Judged, Request, TurnedBack};
use crate::{
    agent::rails::{change_request::Replacement, remaining_text::edit_of_line},
    tools::builtin::stands_in,
};

pub(super) fn judge(request: &Request, change: &Judged<'_>) -> Option<TurnedBack> {
    // With "a.b" in place of "b" every "b" of the file would count as replaced.
    let is_clear = |replacement: &Replacement| !replacement.old.contains(&replacement.new);
    let replacements = &request.only_replacements;
    if replacements.is_empty() || !replacements.iter().all(is_clear) {
        return None;
    }
    let taken_back = |text: &str| {
        let back = |text: String, Replacement { old, new, .. }: &Replacement| text.replace(new, old);
        replacements.iter().fold(text.trim_end().to_owned(), back)
    };
    if taken_back(change.old) == taken_back(change.new) {
        return None;
    }
    let in_words = |Replacement { old, new, .. }: &Replacement| {
        format!("{} by {}", Value::from(&**old), Value::from(&**new))
    };
    let wanted: Vec<String> = replacements.iter().map(in_words).collect();
    let path = change.path;
    let fact = format!(
        "Nothing was changed: the request only replaces {}, and this changes more.",
        wanted.join(" and ")
    );
    let advice = replacements.iter().find_map(|replacement| next_edit(change, replacement));
    let advice =
        advice.unwrap_or_else(|| format!("Nothing of that is left to do in {path}. Go on, or answer."));
    Some(TurnedBack { fact, advice: Some(advice) })
}

/// Returns the advice for the first line in which the old text stands once. `None` if there is no such line. It has the path,
/// because the next call may be about another file.
fn next_edit(
    Judged { path, old: content, .. }: &Judged<'_>,
    Replacement { old, new, .. }: &Replacement,
) -> Option<String> {
    let is_meant = |line: &&str| stands_in(line, old, new) && line.matches(&**old).count() == 1;
    let line = content.lines().find(is_meant).filter(|line| content.matches(line).count() == 1)?;
    Some(edit_of_line(path, line, old, new))
}
