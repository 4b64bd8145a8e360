//! Turns back changes that are probably not what the request means: an edit at another place, of a part of a line instead
//! of the line, at the wrong end of the file, or one that takes more away than was asked for.
//!
//! Each check reads the words of the request by fixed rules. It can be wrong, so a model that makes the same change again
//! gets its way.

mod all_places;
mod lost_parts;
mod meant_place;
mod more_than_replaced;
mod old_body;
mod overwritten_line;
mod part_of_line;
mod request;
mod wrong_end;

use std::collections::HashMap;

use serde_json::Value;

use super::{EDIT_FILE, TurnedBack, WRITE_FILE, changed_place::equal_ends};
use crate::tools::Change;
use request::Request;

/// A file of more bytes is not looked at.
const MAX_BYTES: usize = 256 * 1024;

/// Judges the changes of a run.
pub(in crate::agent) struct ChangeGuard {
    request: Request,
    /// The number of times that a change of a file was turned back, by the reason.
    turned_back: HashMap<(String, Reason), u32>,
}

/// The kind of a reason against a change.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reason {
    AllPlaces,
    OtherPlace,
    PartOfLine,
    OverwrittenLine,
    WrongEnd,
    LostParts,
    OldBody,
    MoreThanReplaced,
}

impl Reason {
    /// Returns how often a change is turned back for this reason. What nobody spoke of is changed by an edit of all places,
    /// and by one that does more than to replace. Small models insist on both.
    fn times(self) -> u32 {
        match self {
            Self::AllPlaces | Self::MoreThanReplaced => 2,
            Self::OtherPlace
            | Self::PartOfLine
            | Self::OverwrittenLine
            | Self::WrongEnd
            | Self::LostParts
            | Self::OldBody => 1,
        }
    }
}

/// A change of a file that exists, with line ends of one kind.
struct Judged<'a> {
    path: &'a str,
    old: &'a str,
    new: &'a str,
    /// `None` for a write of the whole file.
    edit: Option<Edit<'a>>,
}

/// The arguments of an edit.
#[derive(Clone, Copy)]
struct Edit<'a> {
    old_str: &'a str,
    new_str: &'a str,
    all_places: bool,
}

impl ChangeGuard {
    /// `request` is what the user wrote.
    pub(in crate::agent::rails) fn new(request: &str) -> Self {
        Self { request: Request::new(request), turned_back: HashMap::new() }
    }

    /// Judges a call of `tool` with the arguments `args`. Returns the reason why it is turned back.
    pub(in crate::agent) fn judge(
        &mut self,
        tool: &str,
        change: &Change,
        args: &Value,
    ) -> Option<TurnedBack> {
        let old = std::str::from_utf8(change.old.as_deref()?).ok()?;
        if old.len().max(change.new.len()) > MAX_BYTES {
            return None;
        }
        let (old, new) = (with_newlines(old), with_newlines(&change.new));
        let edit = match tool {
            EDIT_FILE => Some(Edit::new(args)?),
            WRITE_FILE => None,
            _ => return None,
        };
        let judged = Judged { path: &change.path, old: &old, new: &new, edit };
        type Check = fn(&Request, &Judged<'_>) -> Option<TurnedBack>;
        let checks: [(Reason, Check); 8] = [
            (Reason::AllPlaces, all_places::judge),
            (Reason::OtherPlace, meant_place::judge),
            (Reason::PartOfLine, part_of_line::judge),
            (Reason::OverwrittenLine, overwritten_line::judge),
            (Reason::WrongEnd, wrong_end::judge),
            (Reason::LostParts, lost_parts::judge),
            (Reason::OldBody, old_body::judge),
            (Reason::MoreThanReplaced, more_than_replaced::judge),
        ];
        checks.into_iter().find_map(|(reason, check)| {
            let found = check(&self.request, &judged)?;
            let times = self.turned_back.entry((change.path.clone(), reason)).or_default();
            *times += 1;
            (*times <= reason.times()).then_some(found)
        })
    }

    /// Returns what the model reads about an edit that failed because its text stands in the file several times: which of
    /// the places the request means. `content` is the file.
    pub(in crate::agent) fn meant_place(&self, content: &str, args: &Value) -> Option<String> {
        if content.len() > MAX_BYTES {
            return None;
        }
        meant_place::advice_on_several(&self.request, &with_newlines(content), Edit::new(args)?)
    }
}

impl<'a> Edit<'a> {
    fn new(args: &'a Value) -> Option<Self> {
        Some(Self {
            old_str: args["old_str"].as_str().filter(|text| !text.is_empty())?,
            new_str: args["new_str"].as_str()?,
            all_places: args["replace_all"] == Value::Bool(true),
        })
    }
}

impl Judged<'_> {
    /// Returns the lines that differ: those of the old text, those of the new text, and the number of lines before them.
    fn changed_lines(&self) -> (Vec<&str>, Vec<&str>, usize) {
        let (old, new): (Vec<&str>, Vec<&str>) = (self.old.lines().collect(), self.new.lines().collect());
        let (before, after) = equal_ends(&old, &new);
        (old[before..old.len() - after].to_vec(), new[before..new.len() - after].to_vec(), before)
    }
}

/// Returns the advice to make this edit.
fn edit_advice(old_str: &str, new_str: &str) -> String {
    format!("Call edit_file with old_str {} and new_str {}.", Value::from(old_str), Value::from(new_str))
}

fn with_newlines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests;
