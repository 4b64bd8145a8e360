//! Undo of what the real tools do, with hostile changes in between.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use serde_json::{Value, json};

use kontekst_core::{CallId, Cancel, OwnListeners, RunId};
use kontekst_store::{
    config::{DirId, Home, ToolsConfig, UndoConfig},
    journal::{Entry, EntryHead, Undoes},
};

use super::*;

use crate::{Executor, ToolBox, builtin};

/// A working directory, a journal and the real tools.
pub(crate) struct TestUndo {
    dir: tempfile::TempDir,
    pub(crate) journal: Arc<Journal>,
    tools: ToolBox,
    pub(crate) work_dir: WorkDir,
    pub(crate) run: RunId,
    pub(crate) calls: u32,
}

impl TestUndo {
    pub(crate) fn new() -> Self {
        Self::with_config(|_| {})
    }

    pub(crate) fn with_config(change: impl FnOnce(&mut UndoConfig)) -> Self {
        Self::in_dir(tempfile::tempdir().unwrap(), change)
    }

    /// Returns one whose files are in memory where the system has that, so that nothing waits for a disk.
    pub(super) fn in_memory() -> Self {
        let in_memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self::in_dir(in_memory.unwrap(), |_| {})
    }

    fn in_dir(dir: tempfile::TempDir, change: impl FnOnce(&mut UndoConfig)) -> Self {
        let home = Home::find(Some(dir.path().join("home"))).unwrap();
        home.create().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let mut config = UndoConfig::default();
        change(&mut config);
        let journal = Journal::new(&home, &config);
        let tools = ToolBox::new(builtin::all(&ToolsConfig::default(), &OwnListeners::default(), None));
        let work_dir = WorkDir::new(&dir.path().join("work"), &home).unwrap();
        let mut test = Self { dir, journal, tools, work_dir, run: RunId::new(), calls: 0 };
        test.begin_run(None);
        test
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    pub(crate) fn put(&self, name: &str, content: &str) {
        fs::write(self.file(name), content).unwrap();
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// Lets the tools record in a new entry.
    pub(crate) fn begin_run(&mut self, undoes: Option<Undoes>) {
        self.run = RunId::new();
        let home = Home::find(Some(self.dir.path().join("home"))).unwrap();
        let head = EntryHead {
            run: self.run.clone(),
            dir: PathBuf::new(),
            id: DirId::default(),
            at: 0,
            words: String::new(),
            undoes,
        };
        self.work_dir =
            WorkDir::new(&self.dir.path().join("work"), &home).unwrap().recorded(&self.journal, head);
    }

    pub(crate) fn call(&mut self, tool: &str, args: &Value) {
        let Some(Executor::Daemon(tool)) = self.tools.find(tool) else { panic!("{tool}") };
        self.calls += 1;
        let of_call = self.work_dir.for_call(&CallId::new(format!("call_{}", self.calls)), &tool.def().name);
        let proposal = tool.propose(args, &of_call);
        let outcome = tool.execute(args, &of_call, &proposal, &Cancel::new());
        assert!(!outcome.is_error(), "{outcome:?}");
    }

    /// Runs a line in the working directory and records what it changes.
    pub(crate) fn command(&self, line: &str) {
        let work_dir = self.work_dir.for_call(&CallId::new("command".to_owned()), "run_command");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", line]).current_dir(self.file(""));
        let run = |_: tree::TreeBefore<'_>| assert!(shell.status().unwrap().success(), "{line}");
        tree::run_covered(&work_dir, run, |(), _| ()).unwrap();
    }

    fn root_mode(&self) -> u32 {
        fs::metadata(self.file("")).unwrap().permissions().mode() & 0o7777
    }

    fn write(&mut self, path: &str, content: &str) {
        self.call("write_file", &json!({"path": path, "content": content}));
    }

    fn plan(&self, run: &RunId, call: Option<&str>) -> UndoPlan {
        let entry = self.journal.read(run).unwrap();
        UndoPlan::new(&self.work_dir, &self.journal, &entry, call, &|_, _| {}).unwrap()
    }

    /// Takes a run back, in an entry of its own, and returns the paths that were not restored with the reasons.
    pub(crate) fn undo(&mut self, run: &RunId) -> Vec<(PathBuf, String)> {
        let refused = |restored: Restored| match restored.result {
            RestoreResult::Refused(reason) => Some((restored.path, reason)),
            RestoreResult::Done | RestoreResult::Kept => None,
        };
        self.undo_with_report(run, None).into_iter().filter_map(refused).collect()
    }

    /// Takes a run or one of its calls back, in an entry of its own, and returns what became of each path.
    pub(super) fn undo_with_report(&mut self, run: &RunId, call: Option<&str>) -> Vec<Restored> {
        let plan = self.plan(run, call);
        self.begin_run(Some(Undoes { run: run.clone(), call: call.unwrap_or_default().to_owned() }));
        let mut report = Vec::new();
        plan.carry_out(&self.work_dir, &self.journal, &mut |restored| report.push(restored)).unwrap();
        report
    }

    /// Returns everything in the working directory: a path and what it is.
    pub(crate) fn tree(&self) -> Vec<(PathBuf, String)> {
        let mut tree = Vec::new();
        collect(&self.file(""), &mut tree);
        tree.sort();
        tree
    }
}

fn collect(dir: &Path, tree: &mut Vec<(PathBuf, String)>) {
    let names: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in names {
        let meta = fs::symlink_metadata(&path).unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let what = if meta.is_symlink() {
            format!("link {:?}", fs::read_link(&path).unwrap())
        } else if meta.is_dir() {
            set_mode(mode | 0o700);
            collect(&path, tree);
            set_mode(mode);
            format!("dir {mode:o}")
        } else if !meta.is_file() {
            "other".to_owned()
        } else {
            set_mode(mode | 0o400);
            let content = fs::read(&path).unwrap();
            set_mode(mode);
            format!("file {mode:o} {content:?}")
        };
        tree.push((path, what));
    }
}

/// Does it on a thread for which modes count, also if the test runs as root.
pub(crate) fn as_ordinary_user(test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let done = scope.spawn(|| {
            let mut rights = capabilities(None).unwrap();
            let ignores_modes = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            for set in [&mut rights.effective, &mut rights.permitted, &mut rights.inheritable] {
                set.remove(ignores_modes);
            }
            set_capabilities(None, rights).unwrap();
            test();
        });
        if let Err(panic) = done.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn a_run_is_taken_back_and_the_undo_too() {
    let mut test = TestUndo::new();
    test.put("old", "one\ntwo\n");
    fs::set_permissions(test.file("old"), fs::Permissions::from_mode(0o751)).unwrap();
    let before = test.tree();
    let run = test.run.clone();
    test.call("edit_file", &json!({"path": "old", "old_str": "two", "new_str": "2"}));
    test.call("edit_file", &json!({"path": "old", "old_str": "one", "new_str": "1"}));
    test.write("a/b/new", "new\n");
    let after = test.tree();
    assert_eq!(test.plan(&run, None).restored(), 4);
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.tree(), before);
    assert!(test.plan(&run, None).files.is_empty(), "nothing is left to take back");
    let undo = test.run.clone();
    assert_eq!(test.undo(&undo), []);
    assert_eq!(test.tree(), after);
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.tree(), before);
}

#[test]
fn one_call_is_taken_back_if_no_later_one_changed_the_file() {
    let mut test = TestUndo::new();
    test.put("f", "1\n");
    test.call("edit_file", &json!({"path": "f", "old_str": "1", "new_str": "2"}));
    test.write("g", "g\n");
    test.call("edit_file", &json!({"path": "f", "old_str": "2", "new_str": "3"}));
    let run = test.run.clone();
    let first = test.plan(&run, Some("call_1"));
    assert!(matches!(&first.files[0].step, UndoStep::Refuse(reason) if reason == CHANGED_SINCE));
    let last = test.plan(&run, Some("call_3"));
    assert_eq!((last.files.len(), last.restored()), (1, 1));
    last.carry_out(&test.work_dir, &test.journal, &mut |restored| {
        assert_eq!(restored.result, RestoreResult::Done);
    })
    .unwrap();
    assert_eq!(test.content("f"), "2\n");
    assert_eq!(test.content("g"), "g\n");
}

#[test]
fn what_has_changed_since_stays_and_the_rest_is_restored() {
    let mut test = TestUndo::new();
    for name in ["edited", "between", "removed", "mode", "fine"] {
        test.put(name, "before\n");
    }
    let run = test.run.clone();
    for name in ["edited", "between", "removed", "mode", "fine", "new/kept"] {
        if name == "new/kept" {
            test.write(name, "mine\n");
        } else {
            test.call("edit_file", &json!({"path": name, "old_str": "before", "new_str": "after"}));
        }
    }
    test.put("edited", "somebody else\n");
    test.put("between", "somebody else\n");
    test.call("edit_file", &json!({"path": "between", "old_str": "somebody else", "new_str": "run"}));
    fs::remove_file(test.file("removed")).unwrap();
    fs::set_permissions(test.file("mode"), fs::Permissions::from_mode(0o700)).unwrap();
    test.put("new/other", "not of the run\n");
    let refused = test.undo(&run);
    let reasons: Vec<(&str, &str)> =
        refused.iter().map(|(path, reason)| (path.to_str().unwrap(), &**reason)).collect();
    assert_eq!(
        reasons,
        [("between", CHANGED_BETWEEN), ("edited", CHANGED_SINCE), ("removed", CHANGED_SINCE)]
    );
    assert_eq!(test.content("edited"), "somebody else\n");
    assert_eq!(test.content("fine"), "before\n");
    assert_eq!(test.content("mode"), "before\n");
    let mode = fs::metadata(test.file("mode")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "a mode that somebody else has set stays");
    assert!(!test.file("new/kept").exists());
    assert_eq!(test.content("new/other"), "not of the run\n", "a directory with other files stays");
}

#[test]
fn a_link_that_takes_a_place_leads_nowhere() {
    let mut test = TestUndo::new();
    let outside = test.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::create_dir(test.file("dir")).unwrap();
    test.put("dir/f", "before\n");
    test.put("g", "before\n");
    let run = test.run.clone();
    for name in ["dir/f", "g"] {
        test.call("edit_file", &json!({"path": name, "old_str": "before", "new_str": "after"}));
    }
    // The same content lies outside, so that only the link shows that it is not the file of the run.
    fs::write(outside.join("f"), "after\n").unwrap();
    fs::rename(test.file("dir"), test.file("moved")).unwrap();
    symlink(&outside, test.file("dir")).unwrap();
    fs::remove_file(test.file("g")).unwrap();
    symlink(outside.join("f"), test.file("g")).unwrap();
    let refused = test.undo(&run);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(refused[0].1, "a directory above it is a link now");
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "after\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_link_that_takes_a_place_after_the_plan_leads_nowhere() {
    let mut test = TestUndo::new();
    let outside = test.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "after\n").unwrap();
    fs::create_dir(test.file("dir")).unwrap();
    test.put("dir/f", "before\n");
    let run = test.run.clone();
    test.call("edit_file", &json!({"path": "dir/f", "old_str": "before", "new_str": "after"}));
    let plan = test.plan(&run, None);
    assert_eq!(plan.restored(), 1);
    fs::rename(test.file("dir"), test.file("moved")).unwrap();
    symlink(&outside, test.file("dir")).unwrap();
    let mut results = Vec::new();
    plan.carry_out(&test.work_dir, &test.journal, &mut |restored| results.push(restored.result)).unwrap();
    assert!(matches!(&results[..], [RestoreResult::Refused(_)]), "{results:?}");
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "after\n");
}

#[test]
fn a_directory_in_the_place_of_a_file_is_not_touched() {
    let mut test = TestUndo::new();
    let run = test.run.clone();
    test.write("f", "new\n");
    fs::remove_file(test.file("f")).unwrap();
    fs::create_dir(test.file("f")).unwrap();
    test.put("f/inner", "mine\n");
    assert_eq!(test.undo(&run), [(PathBuf::from("f"), CHANGED_SINCE.to_owned())]);
    assert_eq!(test.content("f/inner"), "mine\n");
}

#[test]
fn another_name_of_a_file_keeps_its_content() {
    let mut test = TestUndo::new();
    test.put("f", "before\n");
    let run = test.run.clone();
    test.call("edit_file", &json!({"path": "f", "old_str": "before", "new_str": "after"}));
    let other = test.dir.path().join("other name");
    fs::hard_link(test.file("f"), &other).unwrap();
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.content("f"), "before\n");
    assert_eq!(fs::read_to_string(other).unwrap(), "after\n");
}

#[test]
fn a_journal_that_was_tampered_with_changes_nothing() {
    let mut test = TestUndo::new();
    test.put("f", "before\n");
    let run = test.run.clone();
    test.call("edit_file", &json!({"path": "f", "old_str": "before", "new_str": "after"}));
    let folder = test.dir.path().join("home/undo/contents");
    let folder = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    fs::write(&kept, "evil!!\n").unwrap();
    let entry = test.journal.read(&run).unwrap();
    let error = UndoPlan::new(&test.work_dir, &test.journal, &entry, None, &|_, _| {}).unwrap_err();
    assert!(error.to_string().ends_with("does not have the content that its name says"), "{error}");
    fs::remove_file(&kept).unwrap();
    assert_eq!(test.undo(&run), [(PathBuf::from("f"), GONE.to_owned())]);
    assert_eq!(test.content("f"), "after\n");
}

#[test]
fn a_file_that_was_too_large_is_named() {
    let mut test = TestUndo::with_config(|config| config.max_file_bytes = 8);
    test.put("large", "more than eight bytes\n");
    test.put("small", "few\n");
    let run = test.run.clone();
    test.call("edit_file", &json!({"path": "large", "old_str": "more", "new_str": "MORE"}));
    test.call("edit_file", &json!({"path": "small", "old_str": "few", "new_str": "FEW"}));
    assert_eq!(test.undo(&run), [(PathBuf::from("large"), NOT_KEPT.to_owned())]);
    assert_eq!(test.content("small"), "few\n");
}

/// A change that was recorded and never made, as after a crash between the two.
#[test]
fn a_change_that_was_only_recorded_is_passed_over() {
    let mut test = TestUndo::new();
    test.put("f", "1\n");
    let run = test.run.clone();
    test.call("edit_file", &json!({"path": "f", "old_str": "1", "new_str": "2"}));
    let entry = test.entry();
    let (before, after) = (FileState::file(b"2\n", 0o644), FileState::file(b"3\n", 0o644));
    let change = kontekst_store::journal::NewChange {
        content: Some(b"2\n".to_vec()),
        ..kontekst_store::journal::NewChange::of("f".into(), before, after)
    };
    entry.record("call_9", "write_file", vec![change]).unwrap();
    let missing =
        kontekst_store::journal::NewChange::of("g".into(), FileState::Missing, FileState::file(b"", 0o644));
    entry.record("call_9", "write_file", vec![missing]).unwrap();
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.content("f"), "1\n");
}

impl TestUndo {
    /// Returns the entry that the tools record in.
    fn entry(&self) -> Arc<Entry> {
        self.work_dir.entry().unwrap()
    }
}

#[test]
fn a_preview_says_what_will_be_done() {
    let mut test = TestUndo::new();
    test.put("old", "one\n");
    let run = test.run.clone();
    test.call("edit_file", &json!({"path": "old", "old_str": "one", "new_str": "two"}));
    test.write("dir/new", "new\n");
    let previews: Vec<String> = test
        .plan(&run, None)
        .files
        .into_iter()
        .map(|file| match file.step {
            UndoStep::Restore { preview, .. } => preview,
            UndoStep::Refuse(reason) => reason,
        })
        .collect();
    assert_eq!(
        previews,
        [
            "remove the directory dir, if it is empty\n",
            "remove dir/new\n--- dir/new\n+++ dir/new\n@@ -1,1 +0,0 @@\n-new\n",
            "restore old\n--- old\n+++ old\n@@ -1,1 +1,1 @@\n-two\n+one\n",
        ]
    );
}

#[test]
fn an_undo_that_left_something_does_not_count_and_can_be_done_again() {
    let mut test = TestUndo::new();
    test.put("f", "before\n");
    test.put("g", "before\n");
    let run = test.run.clone();
    for name in ["f", "g"] {
        test.call("edit_file", &json!({"path": name, "old_str": "before", "new_str": "after"}));
    }
    test.put("f", "mine\n");
    let plan = test.plan(&run, None);
    test.begin_run(Some(Undoes { run: run.clone(), call: String::new() }));
    assert!(!plan.carry_out(&test.work_dir, &test.journal, &mut |_| {}).unwrap());
    assert_eq!(test.content("g"), "before\n");
    test.put("f", "after\n");
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.content("f"), "before\n");
    let undo = test.run.clone();
    assert!(!test.journal.is_complete(&undo));
    test.work_dir.complete_entry().unwrap();
    assert!(test.journal.is_complete(&undo));
}

/// Directories of the owner that he may not change, also those that the undo makes anew.
#[test]
fn what_is_in_a_directory_without_rights_is_restored() {
    as_ordinary_user(|| {
        let mut test = TestUndo::new();
        for (dir, mode) in [("closed", 0o000), ("listed", 0o500), ("entered", 0o300), ("closed/in", 0o100)] {
            fs::create_dir_all(test.file(dir)).unwrap();
            test.put(&format!("{dir}/f"), "before\n");
            let file = test.file(&format!("{dir}/f"));
            fs::set_permissions(file, fs::Permissions::from_mode(mode & 0o044)).unwrap();
        }
        for (dir, mode) in [("closed/in", 0o100), ("closed", 0o000), ("listed", 0o500), ("entered", 0o300)] {
            fs::set_permissions(test.file(dir), fs::Permissions::from_mode(mode)).unwrap();
        }
        let before = test.tree();
        for line in [
            "chmod -R u+rwX . && rm -r closed listed entered",
            "for d in closed listed entered; do chmod 700 $d; echo evil > $d/new; rm -f $d/f; chmod 000 $d; done",
            "chmod -R u+rwX . && echo evil > closed/in/f && mv closed listed/x && chmod 000 listed/x listed",
            "chmod 700 closed && chmod 700 closed/in && chmod 600 closed/in/f && echo evil > closed/in/f && chmod 0 closed",
        ] {
            test.begin_run(None);
            let run = test.run.clone();
            test.command(line);
            assert_ne!(test.tree(), before, "{line}");
            assert_eq!(test.undo(&run), [], "{line}");
            assert_eq!(test.tree(), before, "{line}");
        }
    });
}

#[test]
fn a_mode_that_keeps_the_owner_out_hides_no_change() {
    as_ordinary_user(|| {
        for line in [
            "chmod 000 f",
            "chmod 000 f d/b d",
            "echo evil > f; chmod 000 f",
            "echo evil > d/b; chmod 000 d",
            "chmod 300 d; echo evil > d/b",
            "rm d/b; chmod 300 d",
            "mkdir x; mv d x/; chmod 000 x",
            "mkdir n; echo x > n/x; chmod 000 n",
            "chmod 6755 f; chmod 1777 d",
            "echo evil > f; chmod 700 .",
        ] {
            let mut test = TestUndo::new();
            fs::create_dir(test.file("d")).unwrap();
            test.put("f", "1\n");
            test.put("d/b", "2\n");
            let before = (test.tree(), test.root_mode());
            test.command(line);
            let run = test.run.clone();
            assert_ne!((test.tree(), test.root_mode()), before, "{line}");
            assert_eq!(test.undo(&run), [], "{line}");
            assert_eq!((test.tree(), test.root_mode()), before, "{line}");
        }
    });
}

#[test]
fn a_command_cannot_keep_the_owner_out_of_the_working_directory() {
    as_ordinary_user(|| {
        let mut test = TestUndo::new();
        test.put("f", "1\n");
        let before = (test.tree(), test.root_mode());
        test.command("echo evil > f; chmod 000 .");
        assert_eq!(test.root_mode(), before.1);
        let run = test.run.clone();
        assert_eq!(test.undo(&run), []);
        assert_eq!((test.tree(), test.root_mode()), before);
        // It was set by somebody else.
        test.begin_run(None);
        let run = test.run.clone();
        test.command("echo evil > f");
        fs::set_permissions(test.file(""), fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(test.undo(&run), []);
        assert_eq!(test.root_mode(), 0o000);
        fs::set_permissions(test.file(""), fs::Permissions::from_mode(before.1)).unwrap();
        assert_eq!(test.tree(), before.0);
    });
}

#[test]
fn many_files_are_taken_back_with_progress() {
    let mut test = TestUndo::in_memory();
    fs::create_dir(test.file("gone")).unwrap();
    (0..1500).for_each(|n| test.put(&format!("gone/{n}"), &format!("{n}\n")));
    let before = test.tree();
    test.command("rm -r gone; mkdir new; for n in $(seq 1500); do echo $n > new/$n; done; ln new/1 new/one");
    let run = test.run.clone();
    let entry = test.journal.read(&run).unwrap();
    let progressed = std::cell::RefCell::new(Vec::new());
    let progress = |looked_at, total| progressed.borrow_mut().push((looked_at, total));
    UndoPlan::new(&test.work_dir, &test.journal, &entry, None, &progress).unwrap();
    assert_eq!(*progressed.borrow(), [(0, 3003), (1000, 3003), (2000, 3003), (3000, 3003), (3003, 3003)]);
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.tree(), before);
}

/// As on a full disk.
#[test]
fn where_nothing_can_be_recorded_nothing_is_restored() {
    let mut test = TestUndo::new();
    test.put("a", "1\n");
    test.put("b", "1\n");
    let run = test.run.clone();
    test.call("edit_file", &json!({"path": "a", "old_str": "1", "new_str": "2"}));
    test.call("edit_file", &json!({"path": "b", "old_str": "1", "new_str": "2"}));
    let plan = test.plan(&run, None);
    test.begin_run(Some(Undoes { run: run.clone(), call: String::new() }));
    let runs = test.dir.path().join("home/undo/runs");
    fs::rename(&runs, runs.with_extension("away")).unwrap();
    fs::write(&runs, "").unwrap();
    let mut report = Vec::new();
    plan.carry_out(&test.work_dir, &test.journal, &mut |restored| report.push(restored)).unwrap();
    for (restored, path) in report.iter().zip(["a", "b"]) {
        let RestoreResult::Refused(reason) = &restored.result else { panic!("{report:?}") };
        assert!(reason.starts_with("what it is now cannot be kept for `kontekst undo`: "), "{reason}");
        assert_eq!((restored.path.as_path(), &*test.content(path)), (Path::new(path), "2\n"));
    }
    fs::remove_file(&runs).unwrap();
    fs::rename(runs.with_extension("away"), &runs).unwrap();
    assert_eq!(test.undo(&run), []);
    assert_eq!([test.content("a"), test.content("b")], ["1\n", "1\n"]);
}

#[test]
fn a_file_with_several_names_is_restored_under_each() {
    let mut test = TestUndo::new();
    test.put("a", "1\n");
    for name in ["b", "c"] {
        fs::hard_link(test.file("a"), test.file(name)).unwrap();
    }
    let before = test.tree();
    for line in ["chmod 640 a", "echo 2 >> b; chmod 640 b"] {
        test.begin_run(None);
        test.command(line);
        let run = test.run.clone();
        assert_eq!(test.undo(&run), [], "{line}");
        assert_eq!(test.tree(), before, "{line}");
        fs::hard_link(test.file("a"), test.file("again")).unwrap();
        fs::rename(test.file("again"), test.file("b")).unwrap();
    }
}
