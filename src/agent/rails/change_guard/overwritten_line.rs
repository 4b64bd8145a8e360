//! Turns back an edit that puts a text in the place of another one where the request wants it added.

use super::{
    Judged, Request, TurnedBack, edit_advice,
    wrong_end::{ADDING, edge_with, wanted_end},
};

/// Words of a request that may want something to go, in lower case.
const REPLACING: [&str; 18] = [
    "become", "becomes", "change", "convert", "delete", "drop", "edit", "instead", "make", "modify", "move",
    "over", "remove", "rename", "replace", "set", "turn", "update",
];

pub(super) fn judge(request: &Request, change: &Judged<'_>) -> Option<TurnedBack> {
    let edit = change.edit.filter(|edit| !edit.all_places)?;
    if !request.has_word(&ADDING) || request.has_word(&REPLACING) {
        return None;
    }
    let (gone, added, before) = change.changed_lines();
    let is_named = |line: &&str| request.instruction.contains(line.trim());
    let filled = |lines: &[&'_ str]| lines.iter().filter(|line| !line.trim().is_empty()).count();
    // Only texts that the request gives are certainly meant to be added as they are.
    let adds_only_named = filled(&added) > 0 && added.iter().all(is_named);
    let lost = gone.iter().find(|line| !line.trim().is_empty() && !is_named(line))?;
    if !adds_only_named || edit.new_str.contains(lost.trim()) {
        return None;
    }
    let text = added.join("\n");
    let way = match wanted_end(request, change.path) {
        Some(end) => edge_with(end, change, &text),
        None => Some(edit_advice(lost, &format!("{lost}\n{text}")))
            .filter(|_| gone.len() == 1 && change.old.matches(lost).count() == 1),
    };
    let fact = format!(
        "Nothing was changed: the request wants something added to {}, and this would remove `{}` in line {}.",
        change.path,
        lost.trim(),
        before + 1
    );
    Some(TurnedBack { fact, advice: way })
}
