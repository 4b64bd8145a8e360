//! `read_file`, `write_file` and `edit_file` from outside, as the agent calls them.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    config::ToolsConfig,
    core::{Cancel, OwnListeners, ToolFailureKind, ToolOutcome},
    tools::{Executor, Fingerprint, Proposal, ToolBox, WorkDir},
};

struct TestWorkDir {
    dir: TempDir,
    work_dir: WorkDir,
    tools: ToolBox,
}

impl TestWorkDir {
    fn new() -> Self {
        Self::with_limit(1 << 20)
    }

    fn with_limit(max_size_bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = WorkDir::new(dir.path()).unwrap();
        let mut config = ToolsConfig::default();
        config.file.max_size_bytes = max_size_bytes;
        Self { dir, work_dir, tools: ToolBox::new(super::all(&config, &OwnListeners::default())) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.file(name), content).unwrap();
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn propose(&self, tool: &str, args: &Value) -> Proposal {
        let Some(Executor::Daemon(tool)) = self.tools.find(tool) else { panic!("{tool}") };
        tool.propose(args, &self.work_dir)
    }

    fn execute(&self, tool: &str, args: &Value, approved: &Proposal) -> Result<String, String> {
        let Some(Executor::Daemon(tool)) = self.tools.find(tool) else { panic!("{tool}") };
        match tool.execute(args, &self.work_dir, approved, &Cancel::new()) {
            ToolOutcome::Done(text) => Ok(text),
            ToolOutcome::Failed { message: why, .. } => Err(why),
        }
    }

    /// Proposes, approves and executes.
    fn call(&self, tool: &str, args: &Value) -> Result<String, String> {
        self.execute(tool, args, &self.propose(tool, args))
    }

    fn read(&self, args: &Value) -> Result<String, String> {
        self.call("read_file", args)
    }

    fn edit(&self, old: &str, new: &str) -> Result<String, String> {
        self.call("edit_file", &json!({"path": "f", "old_str": old, "new_str": new}))
    }
}

#[test]
fn lines_come_with_numbers() {
    let test = TestWorkDir::new();
    test.put("f", "one\r\ntwo\n\nfour");
    let whole = "1: one\n2: two\n3: \n4: four";
    assert_eq!(test.read(&json!({"path": "f"})), Ok(whole.into()));
    assert_eq!(test.read(&json!({"path": "f", "start_line": 0, "end_line": "99"})), Ok(whole.into()));
    assert_eq!(
        test.read(&json!({"path": "f", "start_line": 2.0, "end_line": 3.7})),
        Ok("2: two\n3: ".into())
    );
    assert_eq!(test.read(&json!({"path": "f", "start_line": -5, "end_line": 1})), Ok("1: one".into()));
    let absolute = test.file("f");
    assert_eq!(test.read(&json!({"path": absolute, "end_line": 1})), Ok("1: one".into()));
    assert_eq!(
        test.read(&json!({"path": "f", "start_line": 5})),
        Err("no lines starting from line 5 (file has 4 lines)".into())
    );
    assert_eq!(
        test.read(&json!({"path": "f", "start_line": 5, "end_line": 9})),
        Err("no lines in range 5-9 (file has 4 lines)".into())
    );
    assert_eq!(
        test.read(&json!({"path": "f", "start_line": 3, "end_line": 2})),
        Err("no lines in range 3-2 (file has 4 lines)".into())
    );
    test.put("ten", "x\n".repeat(10));
    assert!(test.read(&json!({"path": "ten"})).unwrap().starts_with(" 1: x\n 2: x\n"));
    test.put("empty", "");
    assert_eq!(test.read(&json!({"path": "empty"})), Ok("(empty file)".into()));
    test.put("newline", "\n");
    assert_eq!(test.read(&json!({"path": "newline"})), Ok("1: ".into()));
    test.put("bom", "\u{FEFF}x");
    assert_eq!(test.read(&json!({"path": "bom"})), Ok("1: x".into()));
}

#[test]
fn odd_files_and_arguments_are_answered() {
    let test = TestWorkDir::new();
    test.put("binary", b"text\nmore\0text\n");
    test.put("latin", b"caf\xe9\n");
    fs::create_dir(test.file("dir")).unwrap();
    assert_eq!(
        test.read(&json!({"path": "binary"})),
        Err("binary is a binary file (it has a NUL byte in line 2)".into())
    );
    assert_eq!(test.read(&json!({"path": "latin"})), Ok("1: caf\u{FFFD}".into()));
    assert_eq!(test.read(&json!({"path": "none"})), Err("file does not exist: none".into()));
    assert_eq!(test.read(&json!({"path": "dir"})), Err("`dir` is a directory".into()));
    assert_eq!(test.read(&json!({})), Err("missing path".into()));
    assert_eq!(test.read(&json!({"path": 1})), Err("missing path".into()));
    let outside = test.read(&json!({"path": "../x"})).unwrap_err();
    assert_eq!(outside, "the path `../x` leads out of the working directory; use a path relative to it");
    symlink("/etc/passwd", test.file("link")).unwrap();
    assert_eq!(test.read(&json!({"path": "link"})), Err("`link` leads out of the working directory".into()));
}

#[test]
fn long_files_go_on_where_they_were_cut() {
    let test = TestWorkDir::new();
    let lines: String = (1..=25_000).map(|n| format!("line {n}\n")).collect();
    test.put("lines", &lines);
    let first = test.read(&json!({"path": "lines"})).unwrap();
    assert!(first.ends_with("10000: line 10000\n(truncated after line 10000; go on with start_line 10001)"));
    let second = test.read(&json!({"path": "lines", "start_line": 10_001})).unwrap();
    assert!(second.starts_with("10001: line 10001\n"));
    assert!(second.ends_with("(truncated after line 20000; go on with start_line 20001)"));
    let third = test.read(&json!({"path": "lines", "start_line": 20_001})).unwrap();
    assert!(third.ends_with("25000: line 25000"));

    test.put("exact", "x\n".repeat(10_000));
    assert!(!test.read(&json!({"path": "exact"})).unwrap().contains("truncated"));

    test.put("wide", format!("{}\nshort\n", "é".repeat(400_000)));
    let wide = test.read(&json!({"path": "wide"})).unwrap();
    assert!(wide.len() < 263_000 && wide.ends_with("or more; go on with start_line 2)"), "{}", wide.len());
    assert_eq!(test.read(&json!({"path": "wide", "start_line": 2})), Ok("2: short".into()));

    test.put("blocks", "y".repeat(99_999).as_str().to_owned() + "\n" + &"z".repeat(200_000) + "\nend");
    let blocks = test.read(&json!({"path": "blocks"})).unwrap();
    assert!(blocks.ends_with("(truncated after line 1; go on with start_line 2)"));
    let blocks = test.read(&json!({"path": "blocks", "start_line": 2})).unwrap();
    assert!(blocks.ends_with("z\n3: end"));
}

#[test]
fn a_huge_file_costs_no_more_than_what_is_shown() {
    let test = TestWorkDir::new();
    let file = fs::File::create(test.file("sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert!(test.read(&json!({"path": "sparse"})).unwrap_err().contains("binary"));
    let cancel = Cancel::new();
    cancel.cancel();
    let Some(Executor::Daemon(tool)) = test.tools.find("read_file") else { panic!() };
    let outcome = tool.execute(&json!({"path": "sparse"}), &test.work_dir, &Proposal::default(), &cancel);
    assert_eq!(outcome, ToolOutcome::failed(ToolFailureKind::Cancelled, "cancelled"));
}

#[test]
fn files_are_written() {
    let test = TestWorkDir::new();
    let args = json!({"path": "a/b/new.txt", "content": "hé\n"});
    assert_eq!(test.call("write_file", &args), Ok("Successfully wrote 4 bytes to a/b/new.txt".into()));
    assert_eq!(test.content("a/b/new.txt"), "hé\n");
    assert_eq!(test.call("write_file", &args), Ok("no change: a/b/new.txt already has this content".into()));
    let args = json!({"path": "a/b/new.txt", "content": ""});
    assert_eq!(test.call("write_file", &args), Ok("Successfully wrote 0 bytes to a/b/new.txt".into()));
    assert_eq!(test.content("a/b/new.txt"), "");
    for (args, why) in [
        (json!({"path": "x"}), "missing content"),
        (json!({"content": "x"}), "missing path"),
        (json!({"path": "a", "content": ""}), "`a` is a directory"),
        (json!({"path": "d/", "content": ""}), "`d/` is a directory"),
    ] {
        assert_eq!(test.call("write_file", &args), Err(why.into()));
        assert_eq!(test.propose("write_file", &args).preview, format!("(this call would fail: {why})\n"));
    }
    assert!(!test.file("d").exists());
}

#[test]
fn nothing_is_written_that_was_not_shown() {
    let test = TestWorkDir::new();
    let args = json!({"path": "f", "content": "mine"});
    let changed = Err("f changed since it was shown; nothing was written. Read it again.".into());

    let shown = test.propose("write_file", &args);
    assert_eq!(shown.target, Some(Fingerprint::Missing));
    test.put("f", "theirs");
    assert_eq!(test.execute("write_file", &args, &shown), changed);

    let shown = test.propose("write_file", &args);
    assert_eq!(shown.target, Some(Fingerprint::of(b"theirs")));
    test.put("f", "Theirs");
    assert_eq!(test.execute("write_file", &args, &shown), changed);

    let shown = test.propose("write_file", &args);
    fs::remove_file(test.file("f")).unwrap();
    assert_eq!(test.execute("write_file", &args, &shown), changed);

    test.put("f", "a b");
    let edit = json!({"path": "f", "old_str": "a", "new_str": "c"});
    let shown = test.propose("edit_file", &edit);
    test.put("f", "a B");
    assert_eq!(test.execute("edit_file", &edit, &shown), changed);
    assert_eq!(test.execute("edit_file", &edit, &Proposal::default()), changed);
    assert_eq!(test.content("f"), "a B");

    // The same bytes, but the way there now leads to a protected file.
    fs::create_dir_all(test.file(".git/hooks")).unwrap();
    fs::create_dir(test.file("plain")).unwrap();
    let args = json!({"path": "plain/pre-commit", "content": "#!/bin/sh"});
    let shown = test.propose("write_file", &args);
    assert_eq!(shown.caution, None);
    fs::remove_dir(test.file("plain")).unwrap();
    symlink(".git/hooks", test.file("plain")).unwrap();
    assert!(test.execute("write_file", &args, &shown).unwrap_err().contains("changed since it was shown"));
    assert!(!test.file(".git/hooks/pre-commit").exists());
}

#[test]
fn flipping_a_byte_of_the_target_stops_the_call() {
    let test = TestWorkDir::new();
    let args = json!({"path": "f", "content": "new"});
    let old: Vec<u8> = (0..200).collect();
    for at in 0..old.len() {
        test.put("f", &old);
        let shown = test.propose("write_file", &args);
        let mut flipped = old.clone();
        flipped[at] ^= 1;
        test.put("f", &flipped);
        assert!(test.execute("write_file", &args, &shown).is_err(), "byte {at}");
        assert_eq!(fs::read(test.file("f")).unwrap(), flipped);
    }
}

#[test]
fn a_person_is_warned() {
    let test = TestWorkDir::new();
    let caution = |path: &str| test.propose("write_file", &json!({"path": path, "content": "x"})).caution;
    for path in
        [".git/hooks/pre-commit", ".env", "AGENTS.md", ".GIT/config", ".kontekst/config.toml", "a/../.env"]
    {
        assert!(caution(path).is_some(), "{path}");
    }
    assert_eq!(caution("src/main.rs"), None);
    fs::create_dir_all(test.file(".git/hooks")).unwrap();
    symlink(".git/hooks", test.file("innocent")).unwrap();
    assert!(caution("innocent/pre-commit").unwrap().contains(".git/hooks/pre-commit"));
    test.put("one", "x");
    fs::hard_link(test.file("one"), test.file("two")).unwrap();
    assert_eq!(caution("two").unwrap(), "two is one of 2 names of one file");
    let hidden = json!({"path": "f", "content": "a\u{202E}b"});
    assert!(test.propose("write_file", &hidden).caution.unwrap().contains("U+202E"));
}

#[test]
fn a_working_directory_that_steers_programs_warns_about_every_write() {
    let dir = tempfile::tempdir().unwrap();
    let hooks = dir.path().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let test = TestWorkDir { work_dir: WorkDir::new(&hooks).unwrap(), dir, tools: TestWorkDir::new().tools };
    let proposal = test.propose("write_file", &json!({"path": "pre-commit", "content": "x"}));
    assert!(proposal.caution.unwrap().contains("working directory"));
}

#[test]
fn text_is_replaced_where_it_is_meant() {
    let test = TestWorkDir::new();
    let edit = |occurrence: Value| {
        test.put("f", "a x a x a\n");
        let args = json!({"path": "f", "old_str": "a", "new_str": "bb", "occurrence": occurrence});
        test.call("edit_file", &args).map(|done| (done, test.content("f")))
    };
    let all = Ok(("Replaced 3 occurrence(s) in f".to_owned(), "bb x bb x bb\n".to_owned()));
    assert_eq!(edit(json!(0)), all);
    assert_eq!(edit(json!("0")), all);
    assert_eq!(edit(json!(2)), Ok(("Replaced occurrence 2 in f".into(), "a x bb x a\n".into())));
    assert_eq!(edit(json!(3.0)), Ok(("Replaced occurrence 3 in f".into(), "a x a x bb\n".into())));
    assert_eq!(edit(json!(4)), Err("occurrence 4 of old_str not found (only 3 occurrences exist)".into()));
    assert_eq!(edit(json!(-1)), Err("occurrence must be 0 or more; 0 replaces all".into()));
    assert_eq!(
        edit(Value::Null),
        Err("old_str is 3 times in f, at lines 1, 1, 1; add lines around it until it is unique, or give \
             occurrence (1 to 3, or 0 for all)"
            .into())
    );
    assert_eq!(test.content("f"), "a x a x a\n");
    assert_eq!(test.edit("x a\n", ""), Ok("Replaced 1 occurrence(s) in f".into()));
    assert_eq!(test.content("f"), "a x a ");
    test.put("f", "aaaa");
    let all = json!({"path": "f", "old_str": "aa", "new_str": "b", "replace_all": true});
    assert_eq!(test.call("edit_file", &all), Ok("Replaced 2 occurrence(s) in f".into()));
    assert_eq!(test.content("f"), "bb");
    assert_eq!(test.edit("bb", "bb"), Ok("no change: old_str and new_str are the same in f".into()));
}

#[test]
fn a_text_that_is_not_found_gets_a_reason() {
    let test = TestWorkDir::new();
    test.put("f", "fn main() {\n    let total = 1;\n    print(total);\n}\n");
    let why = |old: &str| test.edit(old, "x").unwrap_err();
    assert!(why("").starts_with("old_str is empty"));
    assert_eq!(
        why("2:     let total = 1;\n3:     print(total);"),
        "old_str not found in f; it starts with line numbers of read_file: leave out the number and `: `"
    );
    assert_eq!(
        why("  let total = 1;\n\tprint(total);"),
        "old_str not found in f; lines 2-3 differ from it in white space only, they are:\n    let total = \
         1;\n    print(total);"
    );
    assert_eq!(why("let totals = 1;"), "old_str not found in f; the closest line is 2:     let total = 1;");
    assert_eq!(why("nothing like it at all"), "old_str not found in f");
    test.put("f", "one\r\ntwo\r\n");
    assert!(why("one\ntwo").contains("write \\r\\n in old_str"));
    assert_eq!(test.edit("one\r\ntwo", "1\r\n2"), Ok("Replaced 1 occurrence(s) in f".into()));
    assert_eq!(test.content("f"), "1\r\n2\r\n");
    fs::remove_file(test.file("f")).unwrap();
    assert_eq!(why("x"), "file does not exist: f");
    test.put("f", b"caf\xe9");
    assert_eq!(why("x"), "f is not UTF-8 text and cannot be edited");
}

#[test]
fn a_call_that_would_fail_is_bound_to_what_it_saw() {
    let test = TestWorkDir::new();
    test.put("f", "a");
    let args = json!({"path": "f", "old_str": "b", "new_str": "c"});
    let shown = test.propose("edit_file", &args);
    assert_eq!(shown.preview, "(this call would fail: old_str not found in f)\n");
    test.put("f", "b");
    assert!(test.execute("edit_file", &args, &shown).unwrap_err().contains("changed since it was shown"));
}

#[test]
fn sizes_are_checked_before_memory_is_spent() {
    let test = TestWorkDir::with_limit(1000);
    let write = |bytes: usize| test.call("write_file", &json!({"path": "f", "content": "x".repeat(bytes)}));
    assert!(write(1000).is_ok());
    assert_eq!(write(1001), Err("the content has 1001 bytes, more than the limit of 1000".into()));
    let many = json!({"path": "f", "old_str": "x", "new_str": "yy".repeat(100_000), "occurrence": 0});
    assert_eq!(
        test.call("edit_file", &many),
        Err("the result would have 200000000 bytes, more than the limit of 1000".into())
    );
    test.put("f", "x".repeat(1001));
    assert_eq!(test.edit("x", "y"), Err("`f` has 1001 bytes, more than the limit of 1000".into()));
    assert_eq!(write(10), Err("`f` has 1001 bytes, more than the limit of 1000".into()));
}

/// What a person sees is what happens: GNU `patch` makes the new file of the old one and the preview.
#[test]
fn previews_apply_with_patch() {
    if Command::new("patch").arg("--version").output().is_err() {
        return; // the diff tests check the form without it
    }
    let long: String = (0..300).map(|n| format!("line {n}\n")).collect();
    let cases: Vec<(Option<String>, String)> = vec![
        (None, "one\ntwo\n".into()),
        (None, "no newline".into()),
        (None, "x\n".repeat(50)),
        (Some("a\nb\nc\n".into()), "a\nB\nc\n".into()),
        (Some("a\nb\nc".into()), "a\nb\nc\n".into()),
        (Some("a\nb\nc\n".into()), "a\nb\nc".into()),
        (Some("a".into()), "b".into()),
        (Some(String::new()), "a\n".into()),
        (Some("a\nb\n".into()), String::new()),
        (Some("a\r\nb\r\n".into()), "a\r\nc\r\n".into()),
        (Some("a\rb\nc\n".into()), "a\rB\nc\n".into()),
        (Some("\u{2028}a\u{b}b\u{c}c\u{85}d\n".into()), "\u{2028}a\u{b}b\u{c}C\u{85}d\n".into()),
        (Some(long.clone()), long.replace("line 7\n", "").replace("line 200\n", "new\nnew\n")),
        (Some("--- a\n+++ b\n@@ -1 +1 @@\n".into()), "--- a\n+++ c\n@@ -1 +1 @@\n-- x\n".into()),
        (Some("\n\n\n".into()), "\n\n".into()),
    ];
    for (number, (old, new)) in cases.iter().enumerate() {
        for name in ["f", "with space.txt"] {
            let test = TestWorkDir::new();
            if let Some(old) = old {
                test.put(name, old);
            }
            let preview = test.propose("write_file", &json!({"path": name, "content": new})).preview;
            test.put("preview", &preview);
            let patch = Command::new("patch")
                .args(["--fuzz=0", "--posix", "-p0", "--binary", "-i", "preview", name])
                .current_dir(test.dir.path())
                .output()
                .unwrap();
            assert!(patch.status.success(), "{number}: {patch:?}\n{preview}");
            assert_eq!(fs::read_to_string(test.file(name)).unwrap_or_default(), *new, "{number}\n{preview}");
        }
    }
}

#[test]
fn long_new_files_are_shown_in_part_and_counted() {
    let test = TestWorkDir::new();
    let content: String = (1..=90).map(|n| format!("l{n}\n")).collect();
    let preview = test.propose("write_file", &json!({"path": "f", "content": content})).preview;
    assert!(preview.starts_with("--- /dev/null\n+++ f\n(new file, 90 lines, 351 bytes)\n+l1\n"), "{preview}");
    assert!(preview.contains("+l33\n(40 lines hidden)\n+l74\n") && preview.ends_with("+l90\n"), "{preview}");
    let huge = test.propose("write_file", &json!({"path": "f", "content": "x".repeat(500_000)})).preview;
    assert!(huge.len() < 70_000 && huge.contains("bytes hidden)"), "{}", huge.len());
    test.put("f", "a\n".repeat(100_000));
    let all = json!({"path": "f", "content": "b\n".repeat(100_000)});
    let preview = test.propose("write_file", &all).preview;
    assert!(preview.starts_with("--- f\n+++ f\n-a\n-a\n"), "{}", &preview[..100]);
    assert!(preview.ends_with("(199950 changed lines hidden)\n") && preview.len() < 300, "{}", preview.len());
    let same = json!({"path": "f", "content": "a\n".repeat(100_000)});
    assert_eq!(test.propose("write_file", &same).preview, "(f already has this content)\n");
    let empty = test.propose("write_file", &json!({"path": "e", "content": ""})).preview;
    assert_eq!(empty, "--- /dev/null\n+++ e\n(a new empty file)\n");
    test.put("blob", [0xff, 0xfe]);
    let over = test.propose("write_file", &json!({"path": "blob", "content": "x\n"})).preview;
    assert!(over.starts_with("(replaces 2 bytes that are not text)\n--- /dev/null\n+++ blob\n"), "{over}");
}
