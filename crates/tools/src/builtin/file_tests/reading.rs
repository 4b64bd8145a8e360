//! Tests of `read_file`.

use super::*;

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
        Ok(format!("(the file has 4 lines; all of it:)\n{whole}"))
    );
    assert_eq!(
        test.read(&json!({"path": "f", "start_line": 5, "end_line": 9})),
        Ok(format!("(the file has 4 lines; all of it:)\n{whole}"))
    );
    assert_eq!(
        test.read(&json!({"path": "f", "start_line": 3, "end_line": 2})),
        Err("no lines in range 3-2 (file has 4 lines)".into())
    );
    test.put("long", "x\n".repeat(200));
    assert_eq!(
        test.read(&json!({"path": "long", "start_line": 201})),
        Err("no lines starting from line 201 (file has 200 lines)".into())
    );
    assert_eq!(
        test.read(&json!({"path": "long", "start_line": 201, "end_line": 300})),
        Err("no lines in range 201-300 (file has 200 lines)".into())
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
fn unreadable_files_and_wrong_arguments_are_errors() {
    let test = TestWorkDir::new();
    test.put("binary", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    fs::create_dir(test.file("dir")).unwrap();
    assert_eq!(test.read(&json!({"path": "binary"})), Err("binary is a binary file".into()));
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
fn what_is_not_plain_utf_8_is_shown_and_said() {
    let test = TestWorkDir::new();
    for (content, want) in [
        (
            &b"caf\xe9\nx\n"[..],
            "1: caf\u{FFFD}\n2: x\n(the file is not UTF-8: what is no text in it is shown as \u{FFFD}, and may not be written so)",
        ),
        (b"text\nmore\0text\n", "1: text\n2: more␀text\n(NUL bytes are shown as ␀)"),
        (
            b"\xff\xfeh\0\xe9\0\r\0\n\0x\0",
            "1: hé\n2: x\n(the file is UTF-16; edit_file and write_file change only UTF-8)",
        ),
        (b"\xfe\xff\0h", "1: h\n(the file is UTF-16; edit_file and write_file change only UTF-8)"),
        ("a \u{FFFD} that is there".as_bytes(), "1: a \u{FFFD} that is there"),
    ] {
        test.put("f", content);
        assert_eq!(test.read(&json!({"path": "f"})), Ok(want.into()));
    }
}

#[test]
fn long_files_can_be_read_in_several_calls() {
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
fn a_huge_file_is_not_read_into_memory() {
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
