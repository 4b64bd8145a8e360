//! Turns back an edit that puts a new body of a Python function above the old one.
//!
//! Small models give only the first line of a function in `old_str`, and all of it in `new_str`. The old body then stays below
//! a `return`, and whoever reads the file takes it for the code that runs.

use super::{Judged, Request, TurnedBack, edit_advice};

/// The maximum length of a text that an edit is told to replace, in bytes.
const MAX_TEXT: usize = 1500;

pub(super) fn judge(_: &Request, change: &Judged<'_>) -> Option<TurnedBack> {
    let edit = change.edit.filter(|edit| !edit.all_places && change.path.ends_with(".py"))?;
    let head = edit.old_str.trim();
    let is_head = head.lines().count() == 1 && head.ends_with(':');
    let name = head.strip_prefix("async ").unwrap_or(head).strip_prefix("def ")?.split('(').next()?;
    let mut new = edit.new_str.trim_start().lines().filter(|line| !line.trim().is_empty());
    if !is_head || new.next()?.trim() != head {
        return None;
    }
    let first = new.next()?;
    let last = new.next_back().unwrap_or(first);
    let ends = ["return", "raise"].contains(&last.split_whitespace().next()?);
    if !ends || indentation(last) != indentation(first) {
        return None;
    }
    let start = change.old.find(head)?;
    let end = end_of_body(change.old, start)?;
    let old = &change.old[start..end];
    let fact = format!(
        "Nothing was changed: the old lines of {name} would stay below the new ones. Give the whole old function in old_str."
    );
    let is_usable = old.len() <= MAX_TEXT && change.old.matches(old).count() == 1;
    let advice = is_usable.then(|| edit_advice(old, edit.new_str.trim()));
    Some(TurnedBack { fact, advice })
}

/// Returns the end of the function whose head begins at `start`, without the blank lines after it. `None` if it has no body.
fn end_of_body(text: &str, start: usize) -> Option<usize> {
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let of_head = indentation(&text[line_start..]);
    let (mut at, mut end) = (line_start, None);
    for (number, line) in text[line_start..].split_inclusive('\n').enumerate() {
        let is_blank = line.trim().is_empty();
        if number > 0 && !is_blank && indentation(line) <= of_head {
            break;
        }
        if number > 0 && !is_blank {
            end = Some(at + line.trim_end().len());
        }
        at += line.len();
    }
    end
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}
