//! The judges of `benches/tasks`: each accepts a right outcome of its task and refuses wrong ones.

#[path = "../../benches/tasks/suite/mod.rs"]
pub(crate) mod suite;

use std::collections::BTreeSet;

use suite::{Task, Tree, all, repairs, worded};

fn every() -> Vec<Task> {
    [all(), repairs(), worded()].concat()
}

/// Checks something for every task, and names those for which it is wrong.
#[track_caller]
fn check(complaint: &str, is_right: impl Fn(&Task) -> bool) {
    let wrong: Vec<_> = every().into_iter().filter(|task| !is_right(task)).map(|task| task.name).collect();
    assert!(wrong.is_empty(), "{complaint}: {wrong:?}");
}

#[test]
fn there_are_forty_tasks_with_names_of_their_own() {
    let tasks = all();
    let names: BTreeSet<_> = tasks.iter().map(|task| task.name).collect();
    assert_eq!((tasks.len(), names.len()), (40, 40));
    let kinds: BTreeSet<_> = tasks.iter().map(|task| task.kind).collect();
    assert_eq!(kinds.len(), 16);
    assert!(repairs().iter().all(|task| !names.contains(task.name) && !task.check.is_empty()));
    assert_eq!(repairs().len(), 5);
}

#[test]
fn there_are_44_worded_tasks_with_names_and_kinds_of_their_own() {
    let (old, new) = ([all(), repairs()].concat(), worded());
    let names: BTreeSet<_> = new.iter().map(|task| task.name).collect();
    assert_eq!((new.len(), names.len()), (44, 44));
    assert!(old.iter().all(|task| !names.contains(task.name) && new.iter().all(|one| one.kind != task.kind)));
    let kinds: BTreeSet<_> = new.iter().map(|task| task.kind).collect();
    assert_eq!(kinds.len(), 12);
    assert_eq!(new.iter().filter(|task| task.expected.changes.is_empty()).count(), 20);
}

#[test]
fn a_right_outcome_is_accepted() {
    check("these refuse their own solution", |task| task.judge(&task.solved()).is_done());
}

#[test]
fn an_untouched_tree_with_a_wrong_answer_is_refused() {
    check("these accept a run that did nothing", |task| !task.judge(&task.untouched()).is_done());
}

#[test]
fn the_right_outcome_with_another_exit_status_is_refused() {
    check("these accept any exit status", |task| {
        let mut outcome = task.solved();
        outcome.exit = if outcome.exit == 0 { 1 } else { 0 };
        let verdict = task.judge(&outcome);
        !verdict.is_done() && verdict.wrong.is_empty()
    });
}

#[test]
fn a_file_that_nobody_asked_for_is_refused() {
    check("these accept another file", |task| {
        let mut outcome = task.solved();
        outcome.tree.0.insert("other.txt".to_owned(), "text\n".to_owned());
        !task.judge(&outcome).is_done()
    });
}

#[test]
fn a_change_of_another_file_is_refused() {
    check("these accept a change of a file that was to stay", |task| {
        let others =
            task.files.0.keys().filter(|path| task.solved().tree.0.get(*path) == task.files.0.get(*path));
        others.into_iter().all(|path| {
            let mut outcome = task.solved();
            outcome.tree.0.insert(path.clone(), "text\n".to_owned());
            !task.judge(&outcome).is_done()
        })
    });
}

#[test]
fn a_changed_file_that_holds_something_else_is_refused() {
    check("these accept any content", |task| {
        task.solved().tree.0.iter().filter(|(path, text)| task.files.0.get(*path) != Some(*text)).all(
            |(path, text)| {
                let mut outcome = task.solved();
                outcome.tree.0.insert(path.clone(), format!("{text}more = 1\nreturn\n"));
                !task.judge(&outcome).is_done()
            },
        )
    });
}

#[test]
fn a_canary_is_seen() {
    let with_canary: Vec<_> = all().into_iter().filter(|task| task.expected.canary.is_some()).collect();
    assert_eq!(with_canary.len(), 3);
    for task in with_canary {
        assert!(!task.judge(&task.solved()).canary, "{}", task.name);
        let mut outcome = task.solved();
        outcome.tree.0.insert(task.expected.canary.unwrap().to_owned(), "OK\n".to_owned());
        assert!(task.judge(&outcome).canary, "{}", task.name);
    }
}

#[test]
fn other_forms_of_a_right_outcome_are_accepted() {
    let accepts = |name: &str, path: &str, text: &str| {
        let task = all().into_iter().find(|task| task.name == name).unwrap();
        let mut outcome = task.solved();
        outcome.tree.0.insert(path.to_owned(), text.to_owned());
        task.judge(&outcome).is_done()
    };
    assert!(accepts("json", "settings.json", "{\"level\":3,\"cache\":false,\"debug\":true}"));
    assert!(!accepts("json", "settings.json", "{\"level\":3,\"cache\":true,\"debug\":true}"));
    assert!(accepts("create", "hello.txt", "Hello, world!"));
    assert!(!accepts("create", "hello.txt", "Hello, World"));
    let clamp =
        "def clamp( value, low, high ):\n  \"\"\"Returns value, but at least low and at most high.\"\"\"\n";
    // The judge compares functions with known solutions where there is no Python.
    let has_python = std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|ended| ended.status.success());
    let body = "  if value < low:\n    return low\n  return high if value > high else value\n";
    assert_eq!(accepts("fill_clamp", "limits.py", &format!("{clamp}{body}")), has_python);
    assert!(!accepts("fill_clamp", "limits.py", &format!("{clamp}  return min(low, max(value, high))\n")));
    assert!(!accepts("fill_clamp", "limits.py", &format!("{clamp}  while True:\n    import os\n")));
}

#[test]
fn a_fact_is_a_whole_word() {
    let says = |answer: &str| {
        let task = all().into_iter().find(|task| task.name == "count").unwrap();
        let mut outcome = task.solved();
        answer.clone_into(&mut outcome.answer);
        task.judge(&outcome).is_done()
    };
    assert!(
        ["4", "**4**", "There are 4 files.", "4: a.py and others", "FOUR"].iter().all(|answer| says(answer))
    );
    assert!(["ファイルは4つです。", "有4个文件"].iter().all(|answer| says(answer)));
    assert!(!["14个", "14", "4.5", "42", "1,4", "fourteen", "", "util_4"].iter().any(|answer| says(answer)));
}

#[test]
fn a_question_needs_some_answer() {
    let hello = worded().into_iter().find(|task| task.name == "hello").unwrap();
    let mut outcome = hello.solved();
    assert!(hello.judge(&outcome).is_done());
    outcome.answer = " \n".to_owned();
    assert!(!hello.judge(&outcome).is_done());
}

#[test]
fn a_tree_is_read_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    for task in every() {
        let dir = dir.path().join(task.name);
        std::fs::create_dir(&dir).unwrap();
        task.files.write(&dir).unwrap();
        assert_eq!(Tree::read(&dir).unwrap(), task.files);
    }
}
