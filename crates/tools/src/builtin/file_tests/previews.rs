//! Tests of the preview and the caution that a person sees before a write.

use super::*;

#[test]
fn risky_writes_have_a_caution() {
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

/// GNU `patch` applies each preview to the old file, and the result is the new file.
#[test]
fn previews_apply_with_patch() {
    if Command::new("patch").arg("--version").output().is_err() {
        return; // it is not installed; the tests in `diff.rs` check the format, too
    }
    let long: String = (0..300).map(|n| format!("line {n}\n")).collect();
    let cases: Vec<(Option<String>, String)> = vec![
        (None, "one\ntwo\n".into()),
        (None, "no newline".into()),
        (None, "x\n".repeat(50)),
        (Some("a\nb\nc\n".into()), "a\nB\nc\n".into()),
        (Some("a\nb\nc".into()), "a\nb\nc\n".into()),
        (Some("a\nb\nc".into()), "a\nB\nc".into()),
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
    test.put("blob", [0xff, 0]);
    let over = test.propose("write_file", &json!({"path": "blob", "content": "x\n"})).preview;
    assert!(over.starts_with("(replaces 2 bytes that are not text)\n--- /dev/null\n+++ blob\n"), "{over}");
}
