//! Tests of the search: patterns, globs, files that are left out, and limits.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
};

use tempfile::TempDir;

use super::*;

fn tree(files: &[(&str, &str)]) -> (TempDir, WorkDir) {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let work_dir = WorkDir::without_home(dir.path()).unwrap();
    (dir, work_dir)
}

fn search_with(work_dir: &WorkDir, args: &Value) -> String {
    {
        let outcome = SearchFiles.execute(args, work_dir, &Proposal::default(), &Cancel::new());
        if outcome.is_error() { format!("failed: {}", outcome.text()) } else { outcome.text().to_owned() }
    }
}

fn search(work_dir: &WorkDir, pattern: &str) -> String {
    search_with(work_dir, &json!({"pattern": pattern}))
}

#[track_caller]
fn check(work_dir: &WorkDir, args: &Value, want: &[&str]) {
    assert_eq!(search_with(work_dir, args), want.join("\n"), "{args}");
}

#[test]
fn matching_lines_come_with_their_places() {
    let (_dir, work_dir) = tree(&[
        ("b.py", "def load():\n    return parse_date('x')\n"),
        ("lib/a.py", "def parse_date(s):\r\n    return s[0]\n"),
        ("note.md", "Ask for Parse_Date.\n"),
    ]);
    let all = [
        "b.py:2:     return parse_date('x')",
        "lib/a.py:1: def parse_date(s):",
        "note.md:1: Ask for Parse_Date.",
    ];
    check(&work_dir, &json!({"pattern": "parse_date"}), &all);
    check(&work_dir, &json!({"pattern": "Parse_Date"}), &all[2..]);
    check(
        &work_dir,
        &json!({"pattern": "^def \\w+\\("}),
        &["b.py:1: def load():", "lib/a.py:1: def parse_date(s):"],
    );
    check(&work_dir, &json!({"pattern": "s[0]"}), &["lib/a.py:2:     return s[0]"]);
    check(&work_dir, &json!({"pattern": "load("}), &["b.py:1: def load():"]);
    check(&work_dir, &json!({"pattern": "zebra"}), &["no line matches zebra in 3 files"]);
    assert_eq!(search(&work_dir, ""), "failed: the pattern is empty");
    assert_eq!(search_with(&work_dir, &json!({})), "failed: missing pattern");
}

#[test]
fn a_glob_chooses_the_files() {
    let (dir, work_dir) =
        tree(&[("a.rs", "hit\n"), ("src/b.rs", "hit\n"), ("src/x/c.rs", "hit\n"), ("src/d.txt", "hit\n")]);
    let glob = |glob: &str| search_with(&work_dir, &json!({"pattern": "hit", "glob": glob}));
    assert_eq!(glob("*.rs"), "a.rs:1: hit\nsrc/b.rs:1: hit\nsrc/x/c.rs:1: hit");
    assert_eq!(glob("src"), "src/b.rs:1: hit\nsrc/d.txt:1: hit\nsrc/x/c.rs:1: hit");
    assert_eq!(glob("src/"), glob("src"));
    assert_eq!(glob("src/x/c.rs"), "src/x/c.rs:1: hit");
    assert_eq!(glob("c.rs"), "src/x/c.rs:1: hit");
    assert_eq!(glob("."), glob(""));
    assert_eq!(glob("*.zig"), "no line matches hit in 0 files");
    fs::create_dir(dir.path().join("[id]")).unwrap();
    fs::write(dir.path().join("[id]/[id].tsx"), "hit\n").unwrap();
    for name in ["[id]", "[id]/", "[id]/[id].tsx", "[id].tsx"] {
        assert_eq!(glob(name), "[id]/[id].tsx:1: hit", "{name}");
    }
    assert!(glob("../*").starts_with("failed: the pattern"), "{}", glob("../*"));
}

#[test]
fn secrets_binary_and_ignored_files_are_not_searched() {
    let (dir, work_dir) = tree(&[
        ("a.txt", "token=1\n"),
        (".env", "token=2\n"),
        ("keys/id_rsa", "token=3\n"),
        ("data.bin", "\u{7f}ELF\u{2}\0\0\0token=4\n"),
        ("target/x.txt", "token=5\n"),
        (".git/config", "token=6\n"),
        (".gitignore", "target/\n"),
    ]);
    symlink(".env", dir.path().join("link.txt")).unwrap();
    symlink("/etc/passwd", dir.path().join("out.txt")).unwrap();
    check(
        &work_dir,
        &json!({"pattern": "token|root"}),
        &[
            "a.txt:1: token=1",
            "(left out, because their names say that they hold secrets or settings: 3 files)",
            "(not everything was searched: binary: data.bin)",
        ],
    );
    check(
        &work_dir,
        &json!({"pattern": "token", "glob": ".env"}),
        &[
            "no line matches token in 0 files; files ignored by .gitignore were left out",
            "(left out, because their names say that they hold secrets or settings: 1 file)",
        ],
    );
}

#[test]
fn context_and_limit_bound_what_is_shown() {
    let lines: String =
        (1..=9).map(|n| format!("line {n}{}\n", if n % 4 == 0 { " hit" } else { "" })).collect();
    let (_dir, work_dir) = tree(&[("f", &lines)]);
    let narrow = "(1 of 2 matching lines shown; use a narrower pattern or glob)";
    check(&work_dir, &json!({"pattern": "hit", "limit": 1}), &["f:4: line 4 hit", narrow]);
    check(
        &work_dir,
        &json!({"pattern": "hit", "context": 1}),
        &[
            "f-3- line 3",
            "f:4: line 4 hit",
            "f-5- line 5",
            "--",
            "f-7- line 7",
            "f:8: line 8 hit",
            "f-9- line 9",
        ],
    );
    check(
        &work_dir,
        &json!({"pattern": "hit", "context": 1, "limit": 1}),
        &["f-3- line 3", "f:4: line 4 hit", "f-5- line 5", narrow],
    );
}

#[test]
fn long_lines_are_searched_and_cut() {
    let long = |end: &str| format!("first hit\n{}{end}\nlast hit\n", "var a = 1;".repeat(120_000));
    let (dir, work_dir) = tree(&[("a", &format!("hit {}\n", "é".repeat(500))), ("m.js", &long("hit"))]);
    let text = search(&work_dir, "hit");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].len() < 260 && lines[0].ends_with('…'), "{text}");
    assert_eq!(lines[1], "m.js:1: first hit");
    assert!(lines[2].starts_with("m.js:2: var a") && lines[2].len() < 260, "{text}");
    assert_eq!(lines[3..], ["m.js:3: last hit"]);
    fs::write(dir.path().join("m.js"), format!("{}hit\nlast hit\n", "x".repeat(17 << 20))).unwrap();
    check(
        &work_dir,
        &json!({"pattern": "hit$"}),
        &["m.js:2: last hit", "(not everything was searched: a line of more than 16 MiB: m.js)"],
    );
}

#[test]
fn what_is_there_is_found() {
    let (dir, work_dir) = tree(&[("log", "one\nneedle two\nx\0needle\n"), ("crlf", "alpha\r\nbeta\r\n\r\n")]);
    check(&work_dir, &json!({"pattern": "needle"}), &["log:2: needle two", "log:3: x␀needle"]);
    check(&work_dir, &json!({"pattern": "^alpha$|^$"}), &["crlf:1: alpha", "crlf:3: "]);
    check(&work_dir, &json!({"pattern": "a.*\\r$"}), &["crlf:1: alpha", "crlf:2: beta"]);
    fs::write(dir.path().join("log"), format!("{}needle\n", "line\n".repeat(20_000) + "\0\0")).unwrap();
    check(&work_dir, &json!({"pattern": "needle"}), &["log:20001: ␀␀needle"]);
    fs::write(dir.path().join("a\tb"), "pin\n").unwrap();
    fs::write(dir.path().join(OsStr::from_bytes(b"\xe9l")), "pin\n").unwrap();
    fs::create_dir(dir.path().join("d\t")).unwrap();
    let odd =
        "(not everything was searched: a directory whose name is not UTF-8 or has control characters: d\\t)";
    check(&work_dir, &json!({"pattern": "pin"}), &["\\xe9l:1: pin", "a\\tb:1: pin", odd]);
}

#[test]
fn what_is_no_regular_expression_is_said() {
    let (_dir, work_dir) = tree(&[("a", "foo(x):\nbar(?=y)\n")]);
    for (pattern, why) in [
        ("foo(?=\\()", "look-around, including look-ahead and look-behind, is not supported"),
        ("(o)\\1", "backreferences are not supported"),
        ("foo\\(x\\):\\n", "a pattern is compared with one line at a time"),
    ] {
        let want = format!(
            "`{pattern}` is no regular expression here ({why}), so it was searched as plain text, and no line has that in 1 file"
        );
        check(&work_dir, &json!({"pattern": pattern}), &[&want]);
    }
    check(&work_dir, &json!({"pattern": "bar(?=y)"}), &["a:2: bar(?=y)"]);
    let lines = search(&work_dir, "foo(x):\nbar");
    assert!(
        lines.starts_with("failed: the pattern cannot be searched: a pattern is compared with one line"),
        "{lines}"
    );
}

#[test]
fn many_matches_and_costly_patterns_stay_within_their_limits() {
    let (_dir, work_dir) = tree(&[("f", &"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n".repeat(20_000))]);
    let text = search_with(&work_dir, &json!({"pattern": "a", "limit": 100_000}));
    assert!(text.ends_with("(500 of 20000 matching lines shown; use a narrower pattern or glob)"));
    assert!(search(&work_dir, "(a+)+$").contains("50 of 20000"));
    assert_eq!(
        search(&work_dir, &"(((a{100}){100}){100})".repeat(4)),
        format!(
            "`{}` is no regular expression here (compiled regex exceeds size limit of 1048576), so it was searched \
             as plain text, and no line has that in 1 file",
            "(((a{100}){100}){100})".repeat(4)
        )
    );
}

#[test]
fn a_cancelled_search_is_a_failure() {
    let (_dir, work_dir) = tree(&[("f", "x\n")]);
    let cancel = Cancel::new();
    cancel.cancel();
    let outcome = SearchFiles.execute(&json!({"pattern": "x"}), &work_dir, &Proposal::default(), &cancel);
    assert!(outcome.is_error(), "{outcome:?}");
}

#[test]
fn the_lines_of_many_files_come_in_order_and_the_first_ones_are_shown() {
    let names: Vec<String> = (0..700).map(|n| format!("d{}/f{n:03}", n / 100)).collect();
    let files: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), "one\nhit (a)\ntwo\nthree\nhit (b)\n")).collect();
    let (_dir, work_dir) = tree(&files);
    let expected = |limit: usize| {
        let lines = names.iter().flat_map(|name| [(name, 2, "a"), (name, 5, "b")]);
        let lines = lines.map(|(name, number, what)| format!("{name}:{number}: hit ({what})"));
        let note = format!("({limit} of 1400 matching lines shown; use a narrower pattern or glob)");
        lines.take(limit).chain([note]).collect::<Vec<_>>().join("\n")
    };
    for limit in [1, 50, 499, 500] {
        for pattern in ["hit", "hit (", "hit .[ab]"] {
            assert_eq!(search_with(&work_dir, &json!({"pattern": pattern, "limit": limit})), expected(limit));
        }
    }
    // As a regular expression it matches nothing.
    assert!(
        search(&work_dir, "hit (a)")
            .ends_with("(50 of 700 matching lines shown; use a narrower pattern or glob)")
    );
    let text = search_with(&work_dir, &json!({"pattern": "hit", "context": 1, "limit": 3}));
    let first = ["-1- one", ":2: hit (a)", "-3- two", "-4- three", ":5: hit (b)"]
        .map(|line| format!("d0/f000{line}"));
    let second = ["-1- one", ":2: hit (a)", "-3- two"].map(|line| format!("d0/f001{line}"));
    assert!(text.starts_with(&[first.join("\n"), second.join("\n")].join("\n")), "{text}");
}
