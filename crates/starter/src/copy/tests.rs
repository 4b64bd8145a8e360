//! Tests which arguments a call may have.

use super::{CopiedArguments, CopyRules, CopyState};
use crate::tools::Copied;

/// The arguments of all tools.
const ALL: CopiedArguments = &[
    ("path", Copied::Path),
    ("url", Copied::Url),
    ("pattern", Copied::Pattern),
    ("start_line", Copied::FirstLine),
    ("end_line", Copied::LastLine),
];

/// Returns how much of `arguments` is allowed.
fn said<'a>(request: &str, arguments: &'a str) -> &'a str {
    let rules = CopyRules::new(request);
    let mut at = CopyState::default();
    for (number, &byte) in arguments.as_bytes().iter().enumerate() {
        match rules.step(ALL, at, byte) {
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
    ] {
        assert_eq!(said(request, arguments), arguments, "{request}");
    }
}

#[test]
fn nothing_else_may() {
    for (request, arguments, allowed) in [
        ("read a.txt", r#"{"path": "a.md"}"#, r#"{"path": "a."#),
        ("read x/.y/.z", r#"{"path": "x/.y/.y/.z"}"#, r#"{"path": "x/.y/."#),
        ("lines 3 to 12 of a", r#"{"start_line": 2}"#, r#"{"start_line": "#),
        ("lines 3 to 12 of a", r#"{"end_line": 14}"#, r#"{"end_line": 1"#),
        ("lines 30 to 12 of a", r#"{"start_line": 3, "#, r#"{"start_line": 3"#),
        ("lines two to three", r#"{"start_line": 3"#, r#"{"start_line": "#),
        ("lines two to three", r#"{"start_line": 2, "end_line": 2"#, r#"{"start_line": 2, "end_line": "#),
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
    ] {
        assert_eq!(said(request, arguments), allowed, "{request}");
    }
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
    for (instruction, may_be_second) in [
        ("read b.txt", true),
        ("read the last but one", true),
        ("read the third to last one", false),
        ("read this one", false),
        ("lines 3 to 5 of the second", false),
        ("read all but the third", false),
        ("read the middle one", false),
        ("read the ninth", false),
    ] {
        let request = format!("a.txt\nb.txt\nc.txt\n\n{instruction}");
        assert_eq!(said(&request, wrong) == wrong, may_be_second, "{instruction}");
    }
    assert_eq!(said("b.txt\n\nread this one", wrong), wrong);
}

#[test]
fn a_name_with_spaces_and_an_address_with_brackets_are_whole() {
    for (request, whole, part) in [
        (
            "read Meeting Notes 2024.md",
            r#"{"path": "Meeting Notes 2024.md"}"#,
            r#"{"path": "Meeting Notes"}"#,
        ),
        ("read Meeting Notes 2024.md", r#"{"path": "Meeting Notes 2024.md"}"#, r#"{"path": "2024.md"}"#),
        ("read \"my list.txt\"", r#"{"path": "my list.txt"}"#, r#"{"path": "list.txt"}"#),
        (
            "open https://en.wikipedia.org/wiki/Rust_(programming_language)",
            r#"{"url": "https://en.wikipedia.org/wiki/Rust_(programming_language)"}"#,
            r#"{"url": "https://en.wikipedia.org/wiki/Rust_(programming_language"}"#,
        ),
        ("(see https://a.de/b)", r#"{"url": "https://a.de/b"}"#, r#"{"url": "https://a.de/b)"}"#),
    ] {
        assert_eq!(said(request, whole), whole, "{request}");
        assert_ne!(said(request, part), part, "{request}");
    }
}
