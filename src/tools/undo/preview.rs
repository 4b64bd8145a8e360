//! Says what becomes of a path, for a person.

use std::path::Path;

use crate::{
    journal::FileState,
    tools::{builtin::diff, workspace::Found},
};

/// Returns the description of one step, as a diff where both sides are text. It ends with a newline.
pub(super) fn of(path: &Path, found: &Found, to: &FileState, content: Option<&[u8]>) -> String {
    let name = path.to_string_lossy();
    let head = head(&name, &found.state, to);
    let (old, new) = match (&found.state, to) {
        (FileState::File { .. }, FileState::File { .. }) if content.is_none() => return head,
        (FileState::File { .. } | FileState::Missing, FileState::File { .. } | FileState::Missing) => {
            (found.content.as_deref(), content)
        }
        _ => return head,
    };
    let (old_text, new_text) = (old.map(text), new.map(text));
    match (old_text, new_text) {
        (Some(Some(old)), Some(Some(new))) => head + &diff::unified(&name, Some(old), new),
        (Some(Some(old)), None) => head + &diff::unified(&name, Some(old), ""),
        (None, Some(Some(new))) => head + &diff::unified(&name, None, new),
        (old, new) => {
            let bytes = |side: &Option<Option<&str>>, content: Option<&[u8]>| match (side, content) {
                (None, _) => "nothing".to_owned(),
                (Some(_), content) => format!("{} bytes", content.map_or(0, <[u8]>::len)),
            };
            let (old, new) = (bytes(&old, found.content.as_deref()), bytes(&new, content));
            format!("{head}(not text: {old} become {new})\n")
        }
    }
}

fn text(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content).ok().filter(|text| !text.contains('\0'))
}

/// Returns the first line: what becomes of what.
fn head(name: &str, now: &FileState, to: &FileState) -> String {
    let kind = |state: &FileState| match state {
        FileState::Missing => "nothing".to_owned(),
        FileState::File { .. } => "a file".to_owned(),
        FileState::Link { target } => format!("a link to {}", target.to_string_lossy()),
        FileState::Dir { .. } => "a directory".to_owned(),
        FileState::Other => "a special file".to_owned(),
    };
    let line = match (now, to) {
        (FileState::Dir { .. }, FileState::Missing) => format!("remove the directory {name}, if it is empty"),
        (_, FileState::Missing) => format!("remove {name}"),
        (FileState::Missing, FileState::File { .. }) => format!("restore {name}"),
        (FileState::Missing, to) => format!("restore {name}, {}", kind(to)),
        (now, to) if now.is_same_content(to) => format!("change {name}"),
        (FileState::File { .. }, FileState::File { .. }) => format!("restore {name}"),
        (now, to) => format!("restore {name}: {} becomes {}", kind(now), kind(to)),
    };
    match (now.mode(), to.mode()) {
        (Some(now), Some(to)) if now != to => format!("{line} (mode {now:03o} becomes {to:03o})\n"),
        _ => format!("{line}\n"),
    }
}
