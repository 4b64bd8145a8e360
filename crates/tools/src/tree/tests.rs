//! All kinds of changes that ordinary commands make are found.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
};

use kontekst_core::CallId;

use super::*;

use crate::undo::{UndoPlan, UndoStep, tests::TestUndo};

fn run(test: &TestUndo, line: &str) {
    test.command(line);
}

fn sh(test: &TestUndo, line: &str) {
    assert!(
        Command::new("sh").args(["-c", line]).current_dir(test.file("")).status().unwrap().success(),
        "{line}"
    );
}

/// Returns the paths that were recorded for the run.
fn changed(test: &TestUndo) -> Vec<String> {
    let entry = test.journal.read(&test.run).unwrap();
    assert!(entry.open_commands.is_empty());
    entry.changes.iter().map(|change| change.path.display().to_string()).collect()
}

#[test]
fn every_kind_of_change_is_found_and_taken_back() {
    let mut test = TestUndo::new();
    fs::create_dir_all(test.file("dir/inner")).unwrap();
    for name in ["same", "grown", "rewritten", "gone", "mode", "dir/inner/f", "becomes dir"] {
        test.put(name, "before\n");
    }
    symlink("same", test.file("link")).unwrap();
    let before = test.tree();
    run(
        &test,
        "echo more >> grown; printf 'BEFORE\\n' > rewritten; rm gone; chmod 700 mode; rm -r dir; echo new > new; \
         ln -sf elsewhere link; rm 'becomes dir'; mkdir 'becomes dir'; echo x > 'becomes dir/x'; touch same; mkfifo fifo",
    );
    let mut paths = changed(&test);
    paths.sort();
    assert_eq!(
        paths,
        [
            "becomes dir",
            "becomes dir/x",
            "dir",
            "dir/inner",
            "dir/inner/f",
            "fifo",
            "gone",
            "grown",
            "link",
            "mode",
            "new",
            "rewritten",
            // Its time is another one.
            "same"
        ]
    );
    let run = test.run.clone();
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.tree(), before);
}

#[test]
fn a_file_that_is_rewritten_at_once_is_found() {
    let mut test = TestUndo::new();
    for round in 0..20 {
        test.begin_run(None);
        test.put("f", "1111\n");
        run(&test, "printf '2222\\n' > f");
        assert_eq!(changed(&test), ["f"], "round {round}");
        let id = test.run.clone();
        assert_eq!(test.undo(&id), []);
        assert_eq!(test.content("f"), "1111\n");
    }
}

#[test]
fn a_command_that_changes_nothing_leaves_nothing_to_take_back() {
    let test = TestUndo::new();
    test.put("f", "1\n");
    run(&test, "cat f");
    assert_eq!(changed(&test), [""; 0]);
}

#[test]
fn what_is_left_out_is_named_and_not_touched() {
    let mut test = TestUndo::with_config(|config| config.max_file_bytes = 10);
    test.put(".gitignore", "built/\n");
    for dir in [".git", "node_modules", "src/target", "src/__pycache__", "built", "src/kept"] {
        fs::create_dir_all(test.file(dir)).unwrap();
        test.put(&format!("{dir}/f"), "1\n");
    }
    test.put("large", "more than ten bytes\n");
    let uncovered = not_covered(&test.work_dir);
    assert_eq!(
        uncovered.note(),
        "\n`kontekst undo` will not cover built/, node_modules/, src/__pycache__/, src/target/, large."
    );
    run(&test, "for f in */f src/*/f .git/f large; do echo 2 > $f; done");
    let mut paths = changed(&test);
    paths.sort();
    assert_eq!(paths, ["large", "src/kept/f"]);
    let id = test.run.clone();
    let refused = test.undo(&id);
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].0.to_str(), Some("large"));
    assert!(refused[0].1.contains("too large"), "{refused:?}");
    assert_eq!((test.content("src/kept/f"), test.content("built/f")), ("1\n".to_owned(), "2\n".to_owned()));
}

#[test]
fn a_tree_with_too_many_files_is_said() {
    let everything = NotCovered { everything: true, ..NotCovered::default() };
    assert_eq!(
        everything.note(),
        "\n`kontekst undo` will not cover this: there are more than 50000 files, or paths of more than 4096 bytes."
    );
    let test = TestUndo::new();
    (0..11).for_each(|n| test.put(&format!("f{n}"), ""));
    assert!(
        TreeBefore::TooLarge
            .note()
            .is_some_and(|note| note.starts_with("`kontekst undo` will not cover this"))
    );
    assert_eq!(TreeBefore::NotRecorded.note(), None);
    let limits = |entries| Limits { entries, bytes: 100, file_bytes: 100 };
    assert!(scan(test.work_dir.workspace(), limits(11), None).is_ok());
    assert!(scan(test.work_dir.workspace(), limits(10), None).is_err());
    test.put("a", "12345678901234567890");
    test.put("b", "12345678901234567890");
    let limits = Limits { bytes: 30, ..limits(100) };
    let tree = scan(test.work_dir.workspace(), limits, None).unwrap();
    let over: Vec<_> = tree.over(limits).map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(over, ["b"], "the second file does not fit any more");
}

/// A process that ends in the middle of a command is as good as a panic in it: nothing is recorded after.
#[test]
fn an_interrupted_command_is_taken_back_too() {
    let mut test = TestUndo::new();
    test.put("f", "before\n");
    test.put("gone", "before\n");
    fs::set_permissions(test.file("f"), fs::Permissions::from_mode(0o640)).unwrap();
    let before = test.tree();
    let work_dir = test.work_dir.for_call(&CallId::new("command".to_owned()), "run_command");
    let interrupted = catch_unwind(AssertUnwindSafe(|| {
        let run = |_: TreeBefore<'_>| {
            sh(&test, "echo after > f; rm gone; mkdir -p new/dir; echo x > new/dir/x");
            panic!("as if the process had ended");
        };
        run_covered(&work_dir, run, |(), _| ())
    }));
    assert!(interrupted.is_err());
    let run = test.run.clone();
    let entry = test.journal.read(&run).unwrap();
    assert_eq!((entry.changes.len(), entry.open_commands.len()), (0, 1));
    // The contents that the record needs stay when the journal is pruned.
    test.journal.prune();
    let plan = UndoPlan::new(&test.work_dir, &test.journal, &entry, None, &|_, _| {}).unwrap();
    assert!(plan.files.iter().all(|file| matches!(file.step, UndoStep::Restore { .. })), "{plan:?}");
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.tree(), before);
}

#[test]
fn rules_that_a_command_writes_hide_nothing() {
    for line in [
        "echo 'd/' > .gitignore; echo evil > d/b",
        "echo '*' > .gitignore; echo evil > d/b; mkdir n; echo x > n/x",
        "echo 'd/' > .gitignore; rm d/b",
        "echo 'in/' > d/.gitignore; echo evil > d/in/c; echo x > d/in/new",
        "rm -r d; mkdir d; echo '*' > d/.gitignore; mkdir d/in; echo evil > d/in/c",
        "mkdir n; echo '*' > n/.gitignore; mkdir n/in; echo x > n/in/x",
        "mv d target; echo evil > target/b; mv target d",
        "echo evil > .gitignore; mkdir built/n; mv d/in built/n",
    ] {
        let mut test = TestUndo::new();
        test.put(".gitignore", "built/\n");
        fs::create_dir_all(test.file("d/in")).unwrap();
        fs::create_dir(test.file("built")).unwrap();
        for name in ["d/b", "d/in/c", "built/made"] {
            test.put(name, "before\n");
        }
        let before = test.tree();
        run(&test, line);
        let id = test.run.clone();
        assert_eq!(test.undo(&id), [], "{line}");
        let mut after = test.tree();
        after.retain(|(path, _)| !path.starts_with(test.file("built/n")));
        assert_eq!(after, before, "{line}");
    }
}

/// The rules of before are not recorded, only what they left out.
#[test]
fn rules_that_an_interrupted_command_writes_hide_nothing() {
    let mut test = TestUndo::new();
    test.put(".gitignore", "built/\n");
    fs::create_dir_all(test.file("d/built")).unwrap();
    test.put("d/b", "before\n");
    test.put("d/built/made", "before\n");
    let before = test.tree();
    let work_dir = test.work_dir.for_call(&CallId::new("command".to_owned()), "run_command");
    let interrupted = catch_unwind(AssertUnwindSafe(|| {
        let run = |_: TreeBefore<'_>| {
            sh(&test, "echo '*/' > .gitignore; echo evil > d/b; mkdir e; echo x > e/x; mv d/built e");
            panic!("as if the process had ended");
        };
        run_covered(&work_dir, run, |(), _| ())
    }));
    assert!(interrupted.is_err());
    let id = test.run.clone();
    assert_eq!(test.undo(&id), []);
    assert_eq!(test.content("d/b"), "before\n");
    assert!(!test.file("e/x").exists());
    sh(&test, "mv e/built d; rmdir e");
    assert_eq!(test.tree(), before);
}

#[test]
fn a_directory_that_was_left_out_is_so_under_another_name() {
    let mut test = TestUndo::new();
    fs::create_dir_all(test.file("d/built")).unwrap();
    test.put("d/.gitignore", "built/\n");
    test.put("d/built/made", "before\n");
    run(&test, "mv d e; mkdir d; echo x > d/x");
    let mut paths = changed(&test);
    paths.sort();
    assert_eq!(paths, ["d/.gitignore", "d/x", "e", "e/.gitignore"]);
    let id = test.run.clone();
    assert_eq!(test.undo(&id), []);
    assert_eq!(test.content("e/built/made"), "before\n", "it is not known to undo, so it stays");
    assert_eq!(test.content("d/.gitignore"), "built/\n");
}

#[test]
fn a_command_does_not_run_if_the_tree_cannot_be_kept() {
    let test = TestUndo::new();
    test.put("f", "before\n");
    // As a full disk, for every user.
    fs::create_dir_all(test.file("../home/undo")).unwrap();
    fs::write(test.file("../home/undo/contents"), "").unwrap();
    let work_dir = test.work_dir.for_call(&CallId::new("command".to_owned()), "run_command");
    let refused = run_covered(&work_dir, |_| panic!("it runs"), |(), _| ());
    assert!(matches!(refused, Err(JournalError::Path(_) | JournalError::Home(_))));
}

#[test]
fn a_tree_that_cannot_be_compared_any_more_is_an_error_and_not_an_empty_list() {
    let test = TestUndo::new();
    (0..3).for_each(|n| test.put(&format!("f{n}"), ""));
    let entries = |entries| Limits { entries, bytes: 0, file_bytes: 0 };
    let kept = |path: &str| TreeFile {
        path: path.into(),
        state: FileState::Dir { mode: 0o711 },
        not_kept: false,
        left_out: None,
    };
    let (kept, workspace) = ([kept("")], test.work_dir.workspace());
    assert!(compare(workspace, entries(2), &kept).is_err());
    assert_eq!(compare(workspace, entries(3), &kept).unwrap().len(), 4);
}

#[test]
fn a_deep_tree_is_covered_or_said_not_to_be() {
    let mut test = TestUndo::new();
    let deep: PathBuf = (0..300).map(|_| "d").collect();
    fs::create_dir_all(test.file("").join(&deep)).unwrap();
    fs::write(test.file("").join(&deep).join("f"), "deep\n").unwrap();
    test.command("rm -r d");
    let run = test.run.clone();
    assert_eq!(test.undo(&run), []);
    assert_eq!(fs::read_to_string(test.file("").join(&deep).join("f")).unwrap(), "deep\n");
    test.command(
        "rm -r d; i=0; while [ $i -lt 20 ]; do n=$(printf %0250d $i); mkdir $n; cd -P $n; i=$((i+1)); done",
    );
    assert!(not_covered(&test.work_dir).everything);
}
