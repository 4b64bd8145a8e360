//! Tests which arguments a call may have.

use super::{ArgumentKinds, CopyRules, CopyState};
use crate::CopyKind;

/// The arguments of all tools.
fn kinds() -> ArgumentKinds {
    [
        ("path", CopyKind::Path),
        ("url", CopyKind::Url),
        ("pattern", CopyKind::Pattern),
        ("content", CopyKind::Content),
        ("old_str", CopyKind::OldText),
        ("new_str", CopyKind::NewText),
        ("start_line", CopyKind::FirstLine),
        ("end_line", CopyKind::LastLine),
    ]
    .map(|(name, kind)| (name.as_bytes().to_vec(), kind))
    .to_vec()
}

/// Returns how much of `arguments` is allowed.
fn said<'a>(request: &str, arguments: &'a str) -> &'a str {
    let (rules, kinds) = (CopyRules::new(request).unwrap(), kinds());
    let mut at = CopyState::default();
    for (number, &byte) in arguments.as_bytes().iter().enumerate() {
        match rules.step(&kinds, at, byte) {
            Some(next) => at = next,
            None => return &arguments[..number],
        }
    }
    arguments
}

#[test]
fn what_stands_in_the_request_may_be_said() {
    for (request, arguments) in [
        ("read a/b.txt", r#"{"path": "a/b.txt", "start_line": 3}"#),
        ("read b.txt in the directory a/c", r#"{"path": "a/c/b.txt"}"#),
        ("in a/c/, read b.txt", r#"{"path": "a/c/b.txt"}"#),
        ("read \"b.txt\" in 'a/c'.", r#"{"path": "a/c/b.txt"}"#),
        ("write \"x\ty\" to c", r#"{"path": "c", "content": "x\ty\n"}"#),
        ("write 'say \"ä\"\\' to c", r#"{"path": "c", "content": "say \"ä\"\\\n"}"#),
        ("a\u{1b}b to c", r#"{"path": "c", "content": "a\u001bb"}"#),
        ("a to b in c", r#"{"path": "c", "old_str": "a", "new_str": "b", "occurrence": 0}"#),
        ("get example.com/a", r#"{"url": "https://example.com/a"}"#),
        ("get 'example.com'.", r#"{"url": "https://example.com"}"#),
        ("what does http://a.b/c?d=e say?", r#"{"url": "http://a.b/c?d=e"}"#),
        ("get http://a.de", r#"{"url": "https://a.de"}"#),
        ("is a.de/b up? go to a.de:80/c!", r#"{"url": "https://a.de:80/c"}"#),
        ("read a-b.txt:12", r#"{"path": "a-b.txt"}"#),
        ("- a.txt, -b.txt, (c.txt) read them", r#"{"path": "a.txt"}"#),
        ("- a.txt, -b.txt, (c.txt) read them", r#"{"path": "b.txt"}"#),
        ("- a.txt, -b.txt, (c.txt) read them", r#"{"path": "c.txt"}"#),
        ("lines 3 to twelve of a", r#"{"path": "a", "start_line": 3, "end_line": 12}"#),
        ("a but for its first ten lines", r#"{"path": "a", "start_line": 11}"#),
        ("a, the beginning", r#"{"path": "a", "start_line": 1, "end_line": 20}"#),
        ("the fifth a to b in c", r#"{"path": "c", "occurrence": 5}"#),
        ("cat <a.txt", r#"{"path": "a.txt"}"#),
        ("path=a/b.txt...", r#"{"path": "a/b.txt"}"#),
        ("list a/ and read b", r#"{"path": "a/b"}"#),
        ("all rust files", r#"{"pattern": "**/*.rs"}"#),
        ("rust files in a/b", r#"{"pattern": "a/b/*.rs"}"#),
        ("all below 'a b'", r#"{"pattern": "a b/**/*"}"#),
        ("folders in a/", r#"{"pattern": "a/*/"}"#),
        ("is a/b.txt there?", r#"{"pattern": "a/b.txt"}"#),
        ("which match a/**/b*/*.c", r#"{"pattern": "a/**/b*/*.c"}"#),
        ("get localhost:80/a", r#"{"url": "https://localhost:80/a"}"#),
        ("write it's \"so\" to c", r#"{"path": "c", "content": "it's \"so\"\n"}"#),
        ("write 'it's' to c", r#"{"path": "c", "content": "it's\n"}"#),
        ("write s over to c, it's", r#"{"path": "c", "content": "s over\n"}"#),
        ("write “a 'b' c” to d", r#"{"path": "d", "content": "a 'b' c\n"}"#),
        ("write \"a to c", r#"{"path": "c", "content": "a\n"}"#),
        ("empty c", r#"{"path": "c", "content": ""}"#),
        ("s/a/b/ in c", r#"{"path": "c", "old_str": "a", "new_str": "b"}"#),
    ] {
        assert_eq!(said(request, arguments), arguments, "{request}");
    }
}

#[test]
fn nothing_else_may() {
    for (request, arguments, allowed) in [
        ("read a.txt", r#"{"path": "a.md"}"#, r#"{"path": "a."#),
        ("read x/.y/.z", r#"{"path": "x/.y/.y/.z"}"#, r#"{"path": "x/.y/."#),
        ("write one two to c", r#"{"content": "one too"}"#, r#"{"content": "one t"#),
        ("write one to c", r#"{"content": "one\nto"}"#, r#"{"content": "one\n"#),
        ("a to b in c", r#"{"old_str": "a\"}"#, r#"{"old_str": "a"#),
        ("a to b in c", r#"{"new_str": "\u0041"}"#, r#"{"new_str": ""#),
        ("lines 3 to 12 of a", r#"{"start_line": 2}"#, r#"{"start_line": "#),
        ("lines 3 to 12 of a", r#"{"end_line": 14}"#, r#"{"end_line": 1"#),
        ("lines 30 to 12 of a", r#"{"start_line": 3, "#, r#"{"start_line": 3"#),
        ("lines two to three", r#"{"start_line": 3"#, r#"{"start_line": "#),
        ("lines two to three", r#"{"start_line": 2, "end_line": 2"#, r#"{"start_line": 2, "end_line": "#),
        ("one\ntwo\n\nsave this as c", r#"{"content": "one\n"}"#, r#"{"content": "one\n"#),
        ("get example.com", r#"{"url": "http://example.com"}"#, r#"{"url": "http"#),
        ("follow the link", r#"{"url": "https://follow"}"#, r#"{"url": "https://follow"#),
        ("list the store folder", r#"{"pattern": "story/*"}"#, r#"{"pattern": "story"#),
        ("list a/stores", r#"{"pattern": "a/store/*"}"#, r#"{"pattern": "a/store"#),
    ] {
        assert_eq!(said(request, arguments), allowed, "{request}");
    }
}

#[test]
fn no_text_is_cut() {
    for (request, arguments, allowed) in [
        ("read notes.txt", r#"{"path": "notes.tx"}"#, r#"{"path": "notes.tx"#),
        ("read notes.txt", r#"{"path": "otes.txt"}"#, r#"{"path": ""#),
        ("read b.txt in a/c", r#"{"path": "a/c/b.tx"}"#, r#"{"path": "a/c/b.tx"#),
        ("read b.txt in a/c", r#"{"path": "a/c/txt"}"#, r#"{"path": "a/c/"#),
        ("read a-b/a-b.txt", r#"{"path": "b/a-b.txt"}"#, r#"{"path": ""#),
        ("read a-b/a-b.txt", r#"{"path": "a-b.txt"}"#, r#"{"path": "a-b"#),
        ("read a-b/a-b.txt", r#"{"path": "a-b"}"#, r#"{"path": "a-b"#),
        ("read /a/b", r#"{"path": "a/b"}"#, r#"{"path": ""#),
        ("read .b", r#"{"path": "b"}"#, r#"{"path": ""#),
        ("read a/b/b", r#"{"path": "a/b"}"#, r#"{"path": "a/b"#),
        ("get https://a.de/b/b", r#"{"url": "https://a.de/b"}"#, r#"{"url": "https://a.de/b"#),
        ("get http://a.de/?b=c", r#"{"url": "http://a.de/?b"}"#, r#"{"url": "http://a.de/?b"#),
        ("read a/a.txt", r#"{"path": "a/a/a.txt"}"#, r#"{"path": "a/a"#),
        ("read c in a.b/d", r#"{"path": "a/c"}"#, r#"{"path": "a"#),
        ("get example.com", r#"{"url": "https://example.c"}"#, r#"{"url": "https://example.c"#),
        ("write \"one two\" to c", r#"{"content": "one\n"}"#, r#"{"content": "one"#),
        ("write \"one two\" to c", r#"{"content": "one two\" to c"}"#, r#"{"content": "one two\"#),
        ("write ‘one two’ to c", r#"{"content": "one"}"#, r#"{"content": "one"#),
    ] {
        assert_eq!(said(request, arguments), allowed, "{request}");
    }
}

#[test]
fn no_place_is_copied_from_twice() {
    for (request, arguments, allowed) in [
        (
            "a to b c in d",
            r#"{"path": "d", "old_str": "a to b", "new_str": "b c"}"#,
            r#"{"path": "d", "old_str": "a to b", "new_str": "b c"#,
        ),
        ("a.b in a.b", r#"{"path": "a.b", "content": "a.b\n"}"#, r#"{"path": "a.b", "content": "a.b\n"}"#),
        ("b in a.b", r#"{"path": "a.b", "content": "a.b\n"}"#, r#"{"path": "a.b", "content": "a.b\n"#),
        (
            "a to b in c",
            r#"{"path": "c", "old_str": "a", "new_str": "a"}"#,
            r#"{"path": "c", "old_str": "a", "new_str": "a"#,
        ),
        ("a to a a in c", r#"{"old_str": "a", "new_str": "a a"}"#, r#"{"old_str": "a", "new_str": "a a"}"#),
        ("a to a in c", r#"{"old_str": "a", "new_str": "a"}"#, r#"{"old_str": "a", "new_str": "a"#),
        ("a to b in c", r#"{"old_str": "", "new_str": "a"}"#, r#"{"old_str": ""#),
        ("out with a in c", r#"{"old_str": "a", "new_str": ""}"#, r#"{"old_str": "a", "new_str": ""}"#),
    ] {
        assert_eq!(said(request, arguments), allowed, "{request}");
    }
    // A text that occurs very often is not tried in every order.
    let request = format!("{} in d", "a ".repeat(20_000));
    let arguments = r#"{"path": "d", "old_str": "a", "new_str": "a a"}"#;
    assert_eq!(said(&request, arguments), arguments);
}

#[test]
fn the_third_line_is_the_third() {
    let wrong = r#"{"path": "b.txt"}"#;
    for (instruction, path, address) in [
        ("read the third one", "c/b.md", "https://x.org/b"),
        ("open file #3, please", "c/b.md", "https://x.org/b"),
        ("what is in number three?", "c/b.md", "https://x.org/b"),
        ("read e.md, the 3rd line", "e.md", "https://x.org/b"),
    ] {
        let request = format!("a.txt\nb.txt\nc/b.md x.org/b\nf.txt\n\n{instruction}");
        let right = format!("{{\"path\": \"{path}\"}}");
        assert_eq!(said(&request, &right), right, "{instruction}");
        assert_eq!(said(&request, wrong), r#"{"path": "b."#, "{instruction}");
        let right = format!("{{\"url\": \"{address}\"}}");
        assert_eq!(said(&request, &right), right, "{instruction}");
    }
    for instruction in [
        "read the third to last one",
        "read b.txt",
        "read this one",
        "lines 3 to 5 of the second",
        "read all but the third",
        "read the ninth",
    ] {
        let request = format!("a.txt\nb.txt\nc.txt\n\n{instruction}");
        assert_eq!(said(&request, wrong), wrong, "{instruction}");
    }
}

#[test]
fn a_text_without_quotes_is_doubted_where_the_request_goes_on() {
    let penalty = |request: &str, arguments: &str| {
        let (rules, kinds) = (CopyRules::new(request).unwrap(), kinds());
        arguments
            .bytes()
            .try_fold(CopyState::default(), |at, byte| rules.step(&kinds, at, byte))
            .unwrap()
            .penalty()
    };
    let whole = r#"{"path": "c", "old_str": "old motor", "new_str": "new"}"#;
    let cut = r#"{"path": "c", "old_str": "motor", "new_str": "new"}"#;
    assert!(penalty("replace old motor by new in c", whole) < penalty("replace old motor by new in c", cut));
    let quoted = r#"{"path": "c", "old_str": "is", "new_str": "to be"}"#;
    assert!(penalty("replace 'is' by 'to be' in c", quoted) < penalty("replace is by to be in c", quoted));
    let content = r#"{"path": "c", "content": "is it old\n"}"#;
    assert!(penalty("write is it old to c", content) < f32::EPSILON);
}

#[test]
fn a_long_request_is_not_searched() {
    assert!(CopyRules::new(&"x".repeat(65 << 10)).is_none());
}
