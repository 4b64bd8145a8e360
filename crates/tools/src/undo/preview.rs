//! Says what becomes of a path, for a person.

use std::path::Path;

use kontekst_store::journal::FileState;

use crate::{builtin::diff, workspace::Found};

/// Returns the description of one step, as a diff where both sides are text. It ends with a newline.
pub(super) fn of(path: &Path, found: &Found, to: &FileState, content: Option<&[u8]>) -> String {
    let name = if path.as_os_str().is_empty() { ".".into() } else { path.to_string_lossy() };
    let head = head(&name, &found.state, to);
    let (old, new) = match (&found.state, to) {
        (FileState::File { .. }, FileState::File { .. }) if content.is_none() => return head,
        (FileState::File { .. } | FileState::Missing, FileState::File { .. } | FileState::Missing) => {
            (found.content.as_deref(), content)
        }
        _ => return head,
    };
    match (Side::of(old), Side::of(new)) {
        (Side::Text(old), Side::Text(new)) => head + &diff::unified(&name, Some(old), new),
        (Side::Text(old), Side::Nothing) => head + &diff::unified(&name, Some(old), ""),
        (Side::Nothing, Side::Text(new)) => head + &diff::unified(&name, None, new),
        (old, new) => format!("{head}(not text: {} become {})\n", old.size(), new.size()),
    }
}

/// A file before or after the step.
enum Side<'a> {
    Nothing,
    Text(&'a str),
    /// Bytes that are no text, and their number.
    Binary(usize),
}

impl<'a> Side<'a> {
    fn of(content: Option<&'a [u8]>) -> Self {
        let Some(content) = content else { return Self::Nothing };
        let text = std::str::from_utf8(content).ok().filter(|text| !text.contains('\0'));
        text.map_or(Self::Binary(content.len()), Self::Text)
    }

    fn size(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Text(text) => format!("{} bytes", text.len()),
            Self::Binary(bytes) => format!("{bytes} bytes"),
        }
    }
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
        _ if now.is_same_content(to) => format!("{line} (modification time or extended attributes)\n"),
        _ => format!("{line}\n"),
    }
}
