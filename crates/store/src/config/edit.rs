//! Changes one value of a configuration file. Comments, order and all other keys stay as they are.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::{
    Home, Lock, LockError, PathContext as _, PathError,
    file::{read_text_if_exists, write_atomic},
    inspect::{FileKind, MAX_FILE, Mistake, MistakeKind, find_key, line_of},
    toml_file::position,
};

/// The longest wait for another process that changes a configuration file. Each takes some milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// A change of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// False if the file had the value before.
    pub has_changed: bool,
    /// The line of the key. `None` if the key is not in the file any more.
    pub line: Option<usize>,
}

/// A reason why a configuration file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file is not TOML as it is.
    #[error("{}, line {line}: {message}", path.display())]
    Syntax { path: PathBuf, line: usize, message: String },
    /// A part of the key is a value, and cannot have keys.
    #[error("{}: `{key}` is not a table", path.display())]
    NotTable { path: PathBuf, key: String },
    /// With this value the file could not be used.
    #[error("{}: {message}", path.display())]
    Refused { path: PathBuf, message: String },
    /// Somebody else has changed the file since it was read.
    #[error("{} has changed meanwhile", path.display())]
    Changed { path: PathBuf },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Gives a key another value, or takes the key out of the file, so that its default counts.
///
/// The result is checked before it is written, and replaces the file in one step. A symlink is followed. `key` is a dotted
/// path. A file that is not there counts as empty.
///
/// # Errors
///
/// [`EditError`]; the file is then as it was.
pub fn edit(
    home: &Home,
    kind: FileKind,
    path: &Path,
    key: &str,
    value: Option<Value>,
) -> Result<Edited, EditError> {
    let _lock = Lock::acquire(&home.config_lock(), LOCK_TIMEOUT)?;
    let path = followed(path);
    let before = read_text_if_exists(&path, MAX_FILE)?.unwrap_or_default();
    let after = match value {
        Some(value) => with_value(&path, &before, key, value)?,
        None => without_key(&path, &before, key)?,
    };
    check(kind, &before, &after, key)
        .map_err(|message| EditError::Refused { path: path.clone(), message })?;
    let has_changed = after != before;
    if has_changed {
        write(&path, &after)?;
    }
    Ok(Edited { has_changed, line: line_of(&after, key) })
}

/// Replaces a file that had the text `before`, which is empty for a file that is not there. A symlink is followed. The caller
/// has checked the new text.
///
/// # Errors
///
/// [`EditError::Changed`], and the errors of the lock and of the file, which is then as it was.
pub fn replace(home: &Home, path: &Path, before: &str, after: &str) -> Result<(), EditError> {
    let _lock = Lock::acquire(&home.config_lock(), LOCK_TIMEOUT)?;
    let path = followed(path);
    if read_text_if_exists(&path, MAX_FILE)?.unwrap_or_default() != before {
        return Err(EditError::Changed { path });
    }
    Ok(write(&path, after)?)
}

/// Replaces a file in one step. Its mode stays.
fn write(path: &Path, text: &str) -> Result<(), PathError> {
    let mode = fs::metadata(path).map(|meta| meta.permissions()).ok();
    write_atomic(path, text.as_bytes())?;
    match mode {
        Some(mode) => fs::set_permissions(path, mode).context(path),
        None => Ok(()),
    }
}

/// Returns the file that a symlink leads to. Somebody may keep the configuration with others, elsewhere.
#[expect(
    clippy::disallowed_methods,
    reason = "both paths are the user's own, and nobody else can change them"
)]
fn followed(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Refuses a change that adds a mistake or leaves one in its key.
fn check(kind: FileKind, before: &str, after: &str, key: &str) -> Result<(), String> {
    let is_invalid = |mistake: &&Mistake| matches!(mistake.kind, MistakeKind::Invalid(_));
    let mistakes = kind.mistakes_in(after);
    let line = line_of(after, key);
    let has_more = mistakes.iter().filter(is_invalid).count()
        > kind.mistakes_in(before).iter().filter(is_invalid).count();
    let own = mistakes.iter().filter(is_invalid).find(|mistake| has_more || Some(mistake.line) == line);
    match own.map(|mistake| &mistake.kind) {
        Some(MistakeKind::Invalid(message)) => Err(message.split_whitespace().collect::<Vec<_>>().join(" ")),
        _ => Ok(()),
    }
}

fn parse(path: &Path, text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error: toml_edit::TomlError| EditError::Syntax {
        path: path.to_owned(),
        line: position(text, error.span().map_or(0, |span| span.start)).0,
        message: error.message().to_owned(),
    })
}

/// Returns the text with another value for a key. A key that stands in a comment with its default becomes a key there.
fn with_value(path: &Path, text: &str, key: &str, mut value: Value) -> Result<String, EditError> {
    parse(path, text)?;
    let uncommented = match line_of(text, key) {
        Some(_) => None,
        None => uncommented(text, key).filter(|text| line_of(text, key).is_some()),
    };
    let mut document = parse(path, uncommented.as_deref().unwrap_or(text))?;
    let (tables, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in tables.split('.').filter(|part| !part.is_empty()) {
        let new_table = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let not_table = || EditError::NotTable { path: path.to_owned(), key: part.to_owned() };
        table = table.entry(part).or_insert_with(new_table).as_table_like_mut().ok_or_else(not_table)?;
    }
    if let Some(old) = table.get(name).and_then(Item::as_value) {
        // The user's spaces around the value stay, and the comment behind it.
        *value.decor_mut() = old.decor().clone();
    }
    match table.get_mut(name) {
        Some(item) => *item = Item::Value(value),
        None => drop(table.insert(name, Item::Value(value))),
    }
    Ok(document.to_string())
}

/// Returns the text without the `#` before a key that stands in a comment. `None` if there is no such line.
fn uncommented(text: &str, key: &str) -> Option<String> {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut section = "";
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let header = line.trim_start().strip_prefix('[').and_then(|header| header.split(']').next());
        section = header.unwrap_or(section).trim();
        let bare = line.strip_prefix('#').map(|line| line.strip_prefix(' ').unwrap_or(line));
        let is_key = |bare: &&str| {
            let found = bare.split_once('=').map(|(found, _)| found.trim());
            found == Some(name) && bare.parse::<DocumentMut>().is_ok()
        };
        if let Some(bare) = bare.filter(is_key).filter(|_| section == table) {
            return Some([&text[..at], bare, &text[at + line.len()..]].concat());
        }
        at += line.len();
    }
    None
}

/// Returns the text without a key, its value and what stands behind it on the line.
fn without_key(path: &Path, text: &str, key: &str) -> Result<String, EditError> {
    parse(path, text)?;
    let Some(extent) = extent(text, key) else { return Ok(text.to_owned()) };
    let start = text[..extent.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[extent.end..].find('\n').map_or(text.len(), |at| extent.end + at + 1);
    let shorter = [&text[..start], &text[end..]].concat();
    // A key in an inline table shares its line with others.
    let is_own_line = line_of(&shorter, key).is_none() && parse(path, &shorter).is_ok();
    if is_own_line && key_count(&shorter) + 1 == key_count(text) {
        return Ok(shorter);
    }
    let not_table = || EditError::NotTable { path: path.to_owned(), key: key.to_owned() };
    let mut document = parse(path, text)?;
    let mut parts: Vec<&str> = key.split('.').collect();
    let name = parts.pop().unwrap_or_default();
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in parts {
        table = table.get_mut(part).and_then(Item::as_table_like_mut).ok_or_else(not_table)?;
    }
    table.remove(name);
    Ok(document.to_string())
}

/// Returns the place of a key with its value.
fn extent(text: &str, key: &str) -> Option<std::ops::Range<usize>> {
    find_key(text, key, |key, item| Some(key.span()?.start..item.span()?.end))
}

/// Counts the values in a text, also those in inline tables.
fn key_count(text: &str) -> usize {
    fn count(table: &dyn TableLike) -> usize {
        table.iter().map(|(_, item)| item.as_table_like().map_or(1, count)).sum()
    }
    toml_edit::Document::parse(text).map_or(0, |document| count(document.as_table()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, template};

    fn set(text: &str, key: &str, value: &str) -> Result<String, EditError> {
        with_value(Path::new("x"), text, key, value.parse().unwrap())
    }

    #[test]
    fn only_the_value_changes() {
        for (before, key, value, after) in [
            ("", "a", "1", "a = 1\n"),
            ("a  =  1   # one\nb = 2\n", "a", "'x'", "a  =  'x'   # one\nb = 2\n"),
            ("# of b\nb = 2\n[t]\nc = 1 # c\n", "t.c", "3", "# of b\nb = 2\n[t]\nc = 3 # c\n"),
            ("b = 2\n\n[t]\nc = 1\n", "a", "1", "b = 2\na = 1\n\n[t]\nc = 1\n"),
            ("t.c = 1 # c\n", "t.c", "2", "t.c = 2 # c\n"),
            ("t = { c = 1 }\n", "t.c", "2", "t = { c = 2 }\n"),
            ("", "t.u.c", "2", "[t.u]\nc = 2\n"),
            (
                "# a = 5   # of a\n[t]\n# a = 6\n#c = 7\n",
                "t.a",
                "1",
                "# a = 5   # of a\n[t]\na = 1\n#c = 7\n",
            ),
            ("# a = 5   # of a\nb = 1\n", "a", "1", "a = 1   # of a\nb = 1\n"),
            ("# a = is no TOML\n", "a", "1", "a = 1\n# a = is no TOML\n"),
        ] {
            let found = set(before, key, value).unwrap();
            assert_eq!(found.trim(), after.trim(), "{before:?} {key}");
        }
        assert!(matches!(set("a = 1\n", "a.b", "1"), Err(EditError::NotTable { .. })));
        assert!(matches!(set("a = \n", "b", "1"), Err(EditError::Syntax { line: 1, .. })));
    }

    #[test]
    fn a_key_is_taken_out_with_its_line() {
        for (before, key, after) in [
            ("# of a\na = 1 # one\nb = 2\n", "a", "# of a\nb = 2\n"),
            ("a = [\n 1,\n]\nb = 2", "a", "b = 2"),
            ("t = { c = 1, d = 2 }\n", "t.c", "t = { d = 2 }\n"),
            ("t.c = 1\nt.d = 2\n", "t.c", "t.d = 2\n"),
            ("b = 2\n", "a", "b = 2\n"),
        ] {
            assert_eq!(without_key(Path::new("x"), before, key).unwrap(), after, "{before:?}");
        }
    }

    #[test]
    fn every_key_of_the_file_that_is_written_first_can_be_set_in_its_place() {
        let defaults = toml::Value::try_from(Config::default()).unwrap();
        for key in &*template::KEYS {
            let value = key.split('.').try_fold(&defaults, |value, part| value.get(part));
            let value = value.map_or_else(|| "1".to_owned(), ToString::to_string);
            let after = set(template::CONFIG, key, &value).unwrap();
            let lines = |text: &str| text.lines().count();
            assert_eq!(lines(&after), lines(template::CONFIG), "{key}: {after}");
        }
    }
}
