//! Turns back an edit that takes some words out of a line where the request wants something removed that these words do not
//! name: the rest of the line would stay.

use super::{Judged, Request, TurnedBack, edit_advice};

const REMOVING: [&str; 6] = ["delete", "drop", "remove", "entferne", "entfernen", "lösche"];

/// Words of a request that may mean a part of a line, in lower case.
const PARTS: [&str; 32] = [
    "argument",
    "arguments",
    "attribute",
    "bracket",
    "brackets",
    "character",
    "characters",
    "comma",
    "commas",
    "digit",
    "element",
    "flag",
    "from",
    "letter",
    "name",
    "option",
    "parameter",
    "parameters",
    "part",
    "prefix",
    "quote",
    "quotes",
    "semicolon",
    "semicolons",
    "space",
    "spaces",
    "suffix",
    "trailing",
    "typo",
    "whitespace",
    "word",
    "words",
];

pub(super) fn judge(request: &Request, change: &Judged<'_>) -> Option<TurnedBack> {
    let edit = change.edit.filter(|edit| !edit.all_places && edit.new_str.trim().is_empty())?;
    let removed = edit.old_str.trim();
    let names_it = || request.instruction.contains(removed);
    if !removed.contains(char::is_alphanumeric) || !request.has_word(&REMOVING) || names_it() {
        return None;
    }
    let (old, new, before) = change.changed_lines();
    let ([line], [rest]) = (&old[..], &new[..]) else { return None };
    if names_part(request) || !rest.contains(char::is_alphanumeric) {
        return None;
    }
    let whole = format!("{line}\n");
    let is_unique = change.old.matches(&whole).count() == 1;
    let way = if is_unique { edit_advice(&whole, "") } else { "Give the whole line in old_str.".to_owned() };
    Some(TurnedBack {
        fact: format!(
            "Nothing was changed: this takes only a part out of line {} of {}, and the rest of the line stays.",
            before + 1,
            change.path
        ),
        advice: Some(format!(
            "The line would be `{}`. To remove the whole line: {way} If only this part is meant, make the same call again.",
            rest.trim()
        )),
    })
}

/// Returns true if the request may mean a part of a line. "From" before the name of a file says nothing.
fn names_part(request: &Request) -> bool {
    request.changes.iter().any(|sentence| {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        words.iter().enumerate().any(|(at, word)| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            let is_file = |next: &&str| next.trim_end_matches(['.', ',', ';', '!']).contains(['.', '/']);
            PARTS.contains(&word) && !(word == "from" && words.get(at + 1).is_some_and(is_file))
        })
    })
}
