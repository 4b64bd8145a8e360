//! Turns back a change after which a function, a class, a section or the like is gone of which the request says nothing.
//!
//! Asked to fill in one function, small models write a file that has only this one.

use super::{Judged, Request, TurnedBack, edit_advice};

/// The maximum number of names that are told.
const MAX_NAMES: usize = 3;

/// Words of a request that may mean that parts go away or get other names, as the beginnings of words in lower case.
const REPLACING: [&str; 36] = [
    "clean",
    "clear",
    "collapse",
    "combin",
    "convert",
    "cut",
    "delet",
    "drop",
    "empty",
    "extract",
    "get rid",
    "inline",
    "instead",
    "keep",
    "merge",
    "minif",
    "move",
    "only",
    "overwrit",
    "port ",
    "reduc",
    "refactor",
    "remov",
    "renam",
    "reorgani",
    "replac",
    "restructur",
    "rewrit",
    "shorten",
    "simplif",
    "split",
    "strip",
    "translat",
    "unused",
    "entfern",
    "lösch",
];

/// Words before the name of what they define.
const KEYWORDS: [&str; 17] = [
    "def",
    "fn",
    "func",
    "function",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "impl",
    "module",
    "mod",
    "sub",
    "proc",
    "type",
    "record",
    "object",
];

/// Words that may stand before a keyword.
const MODIFIERS: [&str; 17] = [
    "pub",
    "async",
    "export",
    "default",
    "static",
    "public",
    "private",
    "protected",
    "final",
    "abstract",
    "const",
    "unsafe",
    "extern",
    "sealed",
    "data",
    "open",
    "override",
];

/// The endings of files in which a line `[name]` begins a section.
const WITH_SECTIONS: [&str; 5] = [".toml", ".ini", ".cfg", ".conf", ".service"];

pub(super) fn judge(request: &Request, change: &Judged<'_>) -> Option<TurnedBack> {
    let lower = request.instruction.to_lowercase();
    if request.changes.is_empty() || REPLACING.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let (old, new) = (named_parts(change.path, change.old), named_parts(change.path, change.new));
    let is_new = |name: &&str| old.iter().all(|(_, known)| known != name);
    let gained = new.iter().map(|(_, name)| *name).filter(is_new).count();
    let lost: Vec<&(usize, &str)> = old
        .iter()
        .filter(|(_, name)| new.iter().all(|(_, kept)| kept != name))
        .filter(|(_, name)| !has_name(&request.instruction, name))
        .collect();
    if lost.is_empty() || gained >= lost.len() {
        return None;
    }
    let names: Vec<&str> = lost.iter().take(MAX_NAMES).map(|(_, name)| *name).collect();
    let (names, path) = (names.join(", "), change.path);
    let fact = format!(
        "Nothing was changed: {names} would be gone from {path}, and the request does not ask for that. Call edit_file, \
         and give in old_str and new_str only the lines that change."
    );
    let advice = smaller_edit(change, &new);
    Some(TurnedBack { fact, advice })
}

/// Returns the edit without the parts that it would take away, if they follow those that it keeps, or stand before them.
fn smaller_edit(change: &Judged<'_>, kept: &[(usize, &str)]) -> Option<String> {
    let edit = change.edit?;
    let parts = named_parts(change.path, edit.old_str);
    let is_kept = |part: &&(usize, &str)| kept.iter().any(|(_, name)| *name == part.1);
    let first = parts.iter().position(|part| is_kept(&part))?;
    let after = parts[first..].iter().position(|part| !is_kept(&part)).map(|at| first + at);
    let start = if first == 0 { 0 } else { parts[first].0 };
    let end = after.map_or(edit.old_str.len(), |at| parts[at].0);
    let (old, new) = (edit.old_str[start..end].trim_end(), edit.new_str.trim_end());
    let is_usable = old != edit.old_str.trim_end() && change.old.matches(old).count() == 1 && old != new;
    is_usable.then(|| edit_advice(old, new))
}

/// Returns the names that the lines of a text define, with the offsets of the lines: functions, types, classes and
/// sections.
fn named_parts<'a>(path: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let has_sections = WITH_SECTIONS.iter().any(|end| path.ends_with(end));
    let mut offset = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        let name = if has_sections { section_name(line) } else { defined_name(line) };
        found.extend(name.map(|name| (offset, name)));
        offset += line.len();
    }
    found
}

fn section_name(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_prefix('[')?.strip_suffix(']')?.trim_matches(['[', ']']);
    (!name.is_empty()).then_some(name)
}

/// Returns the name that a line of code defines: `is_even` for `def is_even(n):`.
fn defined_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| {
        MODIFIERS.contains(word) || word.starts_with("pub(") || word.starts_with("extern")
    });
    let keyword = words.next().map(|word| word.trim_end_matches('*'))?;
    if !KEYWORDS.contains(&keyword) {
        return None;
    }
    let word = words.next()?;
    // A method in Go has its receiver before its name.
    let word = match word.starts_with('(') {
        true => words.find(|word| !word.ends_with(')'))?,
        false => word,
    };
    let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
    let (name, rest) = word.split_at(end);
    // "type of" and "class that" are words of a sentence.
    let is_code = !rest.is_empty() || line.trim_end().ends_with(['{', ':', ';', '(', ',', ')']);
    (is_code && name.starts_with(|c: char| c.is_alphabetic() || c == '_')).then_some(name)
}

/// Returns true if the text has this name as a whole word.
fn has_name(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}
