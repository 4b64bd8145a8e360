//! Every change of a run is in the journal before it is made.

use std::{fs, path::Path};

use kontekst_agent::{StartRun, SubagentOptions};
use kontekst_store::{
    config::UndoConfig,
    journal::{FileState, Journal, Metadata, StoredEntry},
};
use serde_json::json;

use super::{TestCore, scripted_provider::Step};

fn write(path: &str, content: &str) -> (&'static str, serde_json::Value) {
    ("write_file", json!({"path": path, "content": content}))
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, serde_json::Value) {
    ("edit_file", json!({"path": path, "old_str": old, "new_str": new}))
}

/// Returns the entries of all runs, the newest first.
fn entries(test: &TestCore) -> Vec<StoredEntry> {
    let journal = Journal::new(test.core.home(), &UndoConfig::default());
    journal.heads().unwrap().iter().map(|head| journal.read(&head.run).unwrap()).collect()
}

#[tokio::test]
async fn the_changes_of_a_run_and_of_its_workers_are_one_entry() {
    let test = TestCore::new([
        Step::Call(vec![write("a/b/c", "new\n"), edit("old", "before", "after")]),
        Step::Call(vec![("spawn_worker", json!({"prompt": "write w"}))]),
        Step::Call(vec![write("w", "worker\n")]),
        Step::Say("worker done"),
        Step::Say("done"),
    ]);
    test.write("old", "before\n");
    let subagents = SubagentOptions { allow: true, ..SubagentOptions::default() };
    test.run(StartRun { subagents, ..test.in_session("s", "go on") }).await;
    let entries = entries(&test);
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(entry.head.words, "go on");
    assert_eq!(entry.head.dir, test.work_dir());
    let paths: Vec<_> = entry.changes.iter().map(|change| change.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["a", "a/b", "a/b/c", "old", "w"]);
    let is_dir = |state: &FileState| matches!(state, FileState::Dir { .. });
    assert!(entry.changes[..2].iter().all(|change| is_dir(&change.after)));
    for change in &entry.changes {
        let now = test.work_dir().join(&change.path);
        assert_eq!(is_dir(&change.after), now.is_dir());
        if let FileState::File { bytes, .. } = change.after {
            assert_eq!(bytes, fs::metadata(now).unwrap().len());
            assert!(["write_file", "edit_file"].contains(&&*change.tool) && !change.call.is_empty());
        }
    }
    let before = entry.changes[3].before.clone().with_metadata(Metadata::default());
    assert_eq!(before, FileState::file(b"before\n", mode_of(&test.work_dir().join("old"))));
}

fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;

    fs::metadata(path).unwrap().permissions().mode()
}

#[tokio::test]
async fn a_file_that_cannot_be_recorded_is_not_changed() {
    let test =
        TestCore::new([Step::Call(vec![edit("f", "old", "new")]), Step::Say("could not"), Step::Say("no")]);
    test.write("f", "old\n");
    // A file where the folder of the journal should be.
    fs::write(test.home().join("undo"), "").unwrap();
    test.run(test.in_session("s", "go")).await;
    assert_eq!(test.read("f"), "old\n");
    let stored = test.stored_messages("s");
    let result = stored.iter().find_map(|message| message.tool_result.as_ref()).unwrap();
    assert!(result.output.contains("cannot be kept for `kontekst undo`"), "{}", result.output);
    assert!(!result.output.contains(test.home().to_str().unwrap()), "{}", result.output);
}

#[tokio::test]
async fn nothing_is_kept_where_the_configuration_says_so() {
    let test = TestCore::with_config([Step::Call(vec![write("f", "new\n")]), Step::Say("done")], |config| {
        config.undo.max_bytes = 0;
    });
    test.run(test.in_session("s", "go")).await;
    assert_eq!(test.read("f"), "new\n");
    assert!(!test.home().join("undo").exists());
}

#[tokio::test]
async fn a_file_that_is_too_large_for_the_journal_is_said_before_the_change() {
    let test =
        TestCore::with_config([Step::Call(vec![edit("f", "four", "five")]), Step::Say("done")], |config| {
            config.undo.max_file_bytes = 3;
        });
    test.write("f", "four\n");
    let events = test.run(test.in_session("s", "go")).await;
    let previews: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            kontekst_agent::protocol::Event::ToolsProposed(calls) => Some(calls[0].preview.clone()),
            _ => None,
        })
        .collect();
    assert!(
        previews[0]
            .ends_with("(`kontekst undo` will not cover this: 5 bytes are more than it keeps of a file)\n")
    );
    assert!(entries(&test)[0].changes[0].not_kept);
}
