//! The commands that a person has allowed for a directory: `allowed_commands.json` in the data directory.

use std::{collections::BTreeMap, path::Path, sync::Mutex, sync::PoisonError};

use crate::config::{Home, PathContext as _, PathError, file::read_text, write_atomic};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The commands that are allowed, by the real path of the directory.
type Allowed = BTreeMap<String, Vec<String>>;

/// Is held while the file is read and written again. One daemon has the data directory.
static WRITING: Mutex<()> = Mutex::new(());

/// Returns the rules for a directory. A file that cannot be read has none.
pub(super) fn rules(home: &Home, dir: &str) -> Vec<String> {
    match read(&home.allowed_commands()) {
        Ok(mut allowed) => allowed.remove(dir).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "the allowed commands cannot be read");
            Vec::new()
        }
    }
}

/// Adds rules for a directory.
///
/// # Errors
///
/// [`PathError`] if the file cannot be read or written.
pub(super) fn add(home: &Home, dir: &str, rules: &[String]) -> Result<(), PathError> {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = home.allowed_commands();
    let mut allowed = read(&path)?;
    let known = allowed.entry(dir.to_owned()).or_default();
    for rule in rules {
        if !known.contains(rule) {
            known.push(rule.clone());
        }
    }
    let json = serde_json::to_vec_pretty(&allowed).expect("the keys are strings");
    write_atomic(&path, &json)
}

fn read(path: &Path) -> Result<Allowed, PathError> {
    match read_text(path, MAX_BYTES) {
        Ok(text) => serde_json::from_str(&text).map_err(std::io::Error::from).context(path),
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => Ok(Allowed::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_allowed_for_their_directory() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::find(Some(dir.path().to_owned())).unwrap();
        assert_eq!(rules(&home, "/a"), Vec::<String>::new());
        add(&home, "/a", &["cargo test".to_owned()]).unwrap();
        add(&home, "/a", &["cargo test".to_owned(), "ls".to_owned()]).unwrap();
        add(&home, "/b", &["make".to_owned()]).unwrap();
        assert_eq!(
            (rules(&home, "/a"), rules(&home, "/b")),
            (vec!["cargo test".into(), "ls".into()], vec!["make".into()])
        );
        // A file that a person has broken allows nothing, and is not replaced.
        std::fs::write(home.allowed_commands(), "{").unwrap();
        assert_eq!(rules(&home, "/a"), Vec::<String>::new());
        assert!(add(&home, "/a", &["ls".to_owned()]).is_err());
    }
}
