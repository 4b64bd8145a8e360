//! Tests of the journal, which is driven as the tools drive it.

use std::{
    fs,
    os::unix::{ffi::OsStringExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use kontekst_core::clock;

use super::*;

use crate::config::{DirId, UndoConfig};

struct TestJournal {
    _dir: tempfile::TempDir,
    home: Home,
    journal: Arc<Journal>,
}

impl TestJournal {
    fn new(change: impl FnOnce(&mut UndoConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::find(Some(dir.path().join("home"))).unwrap();
        home.create().unwrap();
        let mut config = UndoConfig::default();
        change(&mut config);
        let journal = Journal::new(&home, &config);
        Self { _dir: dir, home, journal }
    }

    fn entry(&self) -> Arc<Entry> {
        let (run, dir, words) = (RunId::new(), PathBuf::from("/work"), "do it".to_owned());
        self.journal.entry(EntryHead {
            run,
            dir,
            id: DirId { device: None, inode: 7, born: None },
            at: clock::unix_millis(),
            words,
            undoes: None,
        })
    }

    fn file_of(&self, entry: &Entry) -> PathBuf {
        self.home.undo_runs().join(format!("{}.jsonl", entry.head().run))
    }

    /// Records that the file had this content.
    fn record(&self, entry: &Entry, content: &[u8]) {
        entry.record("call", "write_file", vec![replaced("f", content)]).unwrap();
    }

    fn contents(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.home.undo_contents()).unwrap().flatten();
        folders
            .flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten())
            .map(|file| file.path())
            .collect()
    }
}

fn replaced(path: &str, content: &[u8]) -> NewChange {
    let (before, after) = (FileState::file(content, 0o644), FileState::file(b"new", 0o644));
    NewChange { content: Some(content.to_vec()), ..NewChange::of(path.into(), before, after) }
}

#[test]
fn what_was_recorded_is_read_again_and_is_for_this_user_only() {
    let test = TestJournal::new(|_| {});
    let entry = test.entry();
    let odd = PathBuf::from(std::ffi::OsString::from_vec(vec![b'a', 0xff]));
    let link = FileState::Link { target: odd.clone() };
    let changes =
        vec![replaced("dir/f", b"old"), NewChange::of(odd.clone(), link.clone(), FileState::Missing)];
    entry.record("1", "edit_file", changes).unwrap();
    entry.record("2", "edit_file", vec![replaced("g", b"old")]).unwrap();
    let stored = test.journal.read(&entry.head().run).unwrap();
    assert_eq!(stored.head, *entry.head());
    let paths: Vec<_> = stored.changes.iter().map(|change| (&*change.call, &*change.path)).collect();
    assert_eq!(paths, [("1", Path::new("dir/f")), ("1", &odd), ("2", Path::new("g"))]);
    assert_eq!(stored.changes[1].before, link);
    let FileState::File { sha256, bytes, .. } = stored.changes[0].before else { panic!() };
    assert_eq!(test.journal.contents().read(sha256, bytes).unwrap(), b"old");
    assert_eq!(test.contents().len(), 1, "a content is stored once");
    for path in [test.file_of(&entry), test.contents()[0].clone()] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn a_torn_line_counts_as_not_written_and_any_other_damage_is_said() {
    let test = TestJournal::new(|_| {});
    let entry = test.entry();
    test.record(&entry, b"1");
    test.record(&entry, b"2");
    let file = test.file_of(&entry);
    let whole = fs::read(&file).unwrap();
    let lines: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for cut in lines[0]..whole.len() {
        fs::write(&file, &whole[..cut]).unwrap();
        let changes = test.journal.read(&entry.head().run).unwrap().changes.len();
        assert_eq!(changes, lines[1..].iter().filter(|end| **end <= cut).count(), "cut at {cut}");
    }
    let text = String::from_utf8(whole).unwrap();
    for (from, to) in [
        ("\"path\":\"f\"", "\"path\":\"../f\""),
        ("\"path\":\"f\"", "\"path\":\"/f\""),
        ("sha256\":\"", "sha256\":\"x"),
    ] {
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let error = test.journal.read(&entry.head().run).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { line: 2, .. }), "{to}: {error}");
    }
}

#[test]
fn a_content_that_is_not_the_recorded_one_is_refused() {
    let test = TestJournal::new(|_| {});
    let entry = test.entry();
    test.record(&entry, b"old");
    fs::write(&test.contents()[0], "bad").unwrap();
    let hash = ContentHash::of(b"old");
    assert!(matches!(test.journal.contents().read(hash, 3), Err(JournalError::WrongContent { .. })));
    fs::write(&test.contents()[0], "longer").unwrap();
    assert!(matches!(test.journal.contents().read(hash, 3), Err(JournalError::WrongContent { .. })));
    // The next change of a file with this content stores it again.
    test.record(&entry, b"old");
    assert_eq!(test.journal.contents().read(hash, 3).unwrap(), b"old");
}

#[test]
fn pruning_removes_old_entries_and_the_contents_that_nothing_names() {
    let test = TestJournal::new(|config| config.keep_days = 30);
    let (old, new) = (test.entry(), test.entry());
    test.record(&old, b"only old");
    test.record(&old, b"both");
    test.record(&new, b"both");
    assert_eq!(test.journal.prune(), Pruned::default());
    let month_ago = SystemTime::now() - Duration::from_secs(31 * 24 * 3600);
    fs::File::options().write(true).open(test.file_of(&old)).unwrap().set_modified(month_ago).unwrap();
    assert_eq!(test.journal.prune(), Pruned { entries: 1, contents: 1 });
    assert!(matches!(test.journal.read(&old.head().run), Err(JournalError::NotFound(_))));
    assert_eq!(test.journal.read(&new.head().run).unwrap().changes.len(), 1);
    assert_eq!(test.contents().len(), 1);
}

#[test]
fn pruning_keeps_the_newest_entries_within_the_size() {
    let test = TestJournal::new(|config| config.max_bytes = 100_000);
    let entries: Vec<_> = (0..5).map(|_| test.entry()).collect();
    for (at, entry) in entries.iter().enumerate() {
        test.record(entry, &vec![b'a' + u8::try_from(at).unwrap(); 30_000]);
        let modified = SystemTime::now() - Duration::from_secs(100 - at as u64);
        fs::File::options().write(true).open(test.file_of(entry)).unwrap().set_modified(modified).unwrap();
    }
    assert!(test.journal.needs_pruning());
    assert!(!test.journal.needs_pruning(), "once is enough");
    assert_eq!(test.journal.prune(), Pruned { entries: 2, contents: 2 });
    assert_eq!(test.journal.heads().unwrap().len(), 3);
    assert!(test.journal.read(&entries[4].head().run).is_ok());
}

#[test]
fn a_file_that_is_too_large_is_recorded_without_its_content() {
    let test = TestJournal::new(|config| config.max_file_bytes = 3);
    let entry = test.entry();
    test.record(&entry, b"1234");
    assert!(test.journal.read(&entry.head().run).unwrap().changes[0].not_kept);
    assert!(test.contents().is_empty());
}

#[test]
fn runs_are_found_by_the_start_of_their_ids() {
    let test = TestJournal::new(|_| {});
    let entries = [test.entry(), test.entry()];
    entries.iter().for_each(|entry| test.record(entry, b"x"));
    let id = entries[0].head().run.to_string();
    assert_eq!(test.journal.resolve(&id).unwrap(), entries[0].head().run);
    assert!(matches!(test.journal.resolve(&id[..3]), Err(JournalError::Ambiguous { count: 2, .. })));
    assert!(matches!(test.journal.resolve("x"), Err(JournalError::NotFound(_))));
    assert!(matches!(test.journal.resolve(""), Err(JournalError::NotFound(_))));
    assert_eq!(test.journal.heads().unwrap()[0].run, entries[1].head().run, "the newest is first");
}

#[test]
fn the_reason_for_the_model_has_no_path_of_the_data_directory() {
    let error = crate::config::file::new_file_in(Path::new("/nonexistent/home")).unwrap_err();
    assert!(error.source.to_string().contains("/nonexistent/home"), "{error:?}");
    assert_eq!(JournalError::from(error).reason(), "entity not found");
}

/// The journal of an earlier version.
#[test]
fn a_state_without_metadata_is_read() {
    let hash = ContentHash::of(b"x");
    let line = format!(r#"{{"kind":"file","sha256":"{hash}","bytes":1,"mode":420}}"#);
    let state: FileState = serde_json::from_str(&line).unwrap();
    assert_eq!(state, FileState::file(b"x", 0o644));
    assert_eq!(serde_json::to_string(&state).unwrap(), line);
}
