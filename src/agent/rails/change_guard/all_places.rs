//! Turns back an edit of all places of a text where the request does not say that all are meant.
//!
//! Told that a text stands in a file several times, small models replace all of them.

use super::{Judged, Request, TurnedBack, meant_place};

pub(super) fn judge(request: &Request, change: &Judged<'_>) -> Option<TurnedBack> {
    let edit = change.edit.filter(|edit| edit.all_places)?;
    let (path, count) = (change.path, change.old.matches(edit.old_str).count());
    if count < 2 || request.may_mean_all() {
        return None;
    }
    let meant = meant_place::advice_on_several(request, change.old, edit);
    let fact = format!(
        "Nothing was changed: old_str stands in {path} {count} times, and the request does not say that all of them \
         are meant."
    );
    let way = "To change one, add the lines around it to old_str and new_str. To change all of them, call edit_file \
               again with replace_all: true.";
    Some(match meant {
        Some(advice) => TurnedBack { fact, advice: Some(advice) },
        None => TurnedBack { fact: format!("{fact} {way}"), advice: None },
    })
}
