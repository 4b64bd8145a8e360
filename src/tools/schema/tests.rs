//! Tests that mistakes with only one possible meaning are corrected, and that others are refused with a
//! useful message.

use serde_json::json;

use super::*;
use crate::core::CallId;

fn tools() -> Vec<ToolDef> {
    let tool = |name: &str, parameters: Value| ToolDef {
        create_only: false,
        name: name.into(),
        description: "d".into(),
        parameters,
    };
    vec![
        tool(
            "read_file",
            json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string"}, "start_line": {"type": "integer"}, "wrap": {"type": "boolean"},
                "mode": {"type": "string", "enum": ["text", "hex"]}, "share": {"type": "number"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "at": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
                "any": {}, "maybe": {"type": ["integer", "null"]},
            }}),
        ),
        tool("list_files", json!({"type": "object"})),
        tool("a_b", json!({"type": "object"})),
        tool("ab", json!({"type": "object"})),
    ]
}

fn checked(name: &str, arguments: &str) -> Result<CheckedCall, InvalidCall> {
    let call = ToolCall { id: CallId::local(), name: name.into(), arguments: arguments.into() };
    check(&call, &tools())
}

#[test]
fn mistakes_with_one_possible_meaning_are_corrected() {
    for (arguments, meant) in [
        (r#"{"path": "a",}"#, json!({"path": "a"})),
        ("{'path': 'a'}", json!({"path": "a"})),
        ("{path: \"a\"}", json!({"path": "a"})),
        (r#"{"path": "a""#, json!({"path": "a"})),
        (r#"{"path": "a", "tags": ["x""#, json!({"path": "a", "tags": ["x"]})),
        (r#""{\"path\": \"a\"}""#, json!({"path": "a"})),
        (r#""{'path': 'a',}""#, json!({"path": "a"})),
        (r#"{"path": "a", "start_line": "3"}"#, json!({"path": "a", "start_line": 3})),
        (r#"{"path": "a", "start_line": " -3 "}"#, json!({"path": "a", "start_line": -3})),
        (r#"{"path": "a", "share": "0.5"}"#, json!({"path": "a", "share": 0.5})),
        (r#"{"path": "a", "wrap": "True"}"#, json!({"path": "a", "wrap": true})),
        (r#"{"path": "a", "wrap": True}"#, json!({"path": "a", "wrap": true})),
        (r#"{"path": 7}"#, json!({"path": "7"})),
        (r#"{"path": "a", "tags": "x"}"#, json!({"path": "a", "tags": ["x"]})),
        (r#"{"path": "a", "tags": "[\"x\", \"y\"]"}"#, json!({"path": "a", "tags": ["x", "y"]})),
        (r#"{"path": "a", "tags": [1, "y"]}"#, json!({"path": "a", "tags": ["1", "y"]})),
        (r#"{"path": "a", "at": "{\"x\": \"1\"}"}"#, json!({"path": "a", "at": {"x": 1}})),
        (r#"{"path": "a", "mode": "HEX"}"#, json!({"path": "a", "mode": "hex"})),
        (r#"{"Path": "a", "startLine": 1}"#, json!({"path": "a", "start_line": 1})),
        (r#"{"path": "a", "start_line": null}"#, json!({"path": "a"})),
    ] {
        let call = checked("read_file", arguments).unwrap_or_else(|error| panic!("{arguments}: {error:?}"));
        assert_eq!((&call.args, call.arguments), (&meant, meant.to_string()), "{arguments}");
    }
}

#[test]
fn correct_calls_are_not_changed() {
    for arguments in [
        r#"{ "path":"a" }"#,
        r#"{"path": "a", "start_line": 3.0, "share": 1, "more": {"x": [1]}}"#,
        r#"{"path": "a", "any": [{}], "maybe": null}"#,
    ] {
        assert_eq!(checked("read_file", arguments).unwrap().arguments, arguments);
    }
    assert_eq!(checked("list_files", "").unwrap().arguments, "{}");
    assert_eq!(checked("list_files", " \n").unwrap().args, json!({}));
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    for (arguments, reason) in [
        ("", "missing `path`"),
        ("{}", "missing `path`"),
        ("[1]", "the arguments must be a JSON object"),
        ("\"a\"", "the arguments must be a JSON object"),
        ("7", "the arguments must be a JSON object"),
        (r#"{"path": null}"#, "`path` must be of type string"),
        (r#"{"path": ["a"]}"#, "`path` must be of type string"),
        (r#"{"path": "a", "start_line": "three"}"#, "`start_line` must be of type integer"),
        (r#"{"path": "a", "start_line": 3.5}"#, "`start_line` must be of type integer"),
        (r#"{"path": "a", "maybe": "x"}"#, "`maybe` must be of type integer or null"),
        (r#"{"path": "a", "mode": "octal"}"#, "`mode` must be one of [\"text\",\"hex\"]"),
        (r#"{"path": "a", "tags": [{}]}"#, "`tags[0]` must be of type string"),
        (r#"{"path": "a", "at": {}}"#, "missing `at.x`"),
        (r#"{"path": "a", "share": "inf"}"#, "`share` must be of type number"),
    ] {
        let error = checked("read_file", arguments).unwrap_err();
        assert_eq!(
            (error.reason.as_str(), error.tool.as_deref()),
            (reason, Some("read_file")),
            "{arguments}"
        );
    }
    for arguments in [r#"{"path": "a"#, r#"{"path": "#, "read it please", r#"{"path": "a" "b"}"#] {
        let reason = checked("read_file", arguments).unwrap_err().reason;
        assert!(reason.starts_with("the arguments are not valid JSON: "), "{arguments}: {reason}");
    }
}

#[test]
fn a_misspelled_name_is_corrected_if_only_one_tool_matches() {
    for name in ["read_file", "readFile", "READ-FILE", "readfile", "Read File"] {
        assert_eq!(checked(name, r#"{"path": "a"}"#).unwrap().name, "read_file");
    }
    assert_eq!(checked("ab", "{}").unwrap().name, "ab");
    let error = checked("A-B", "{}").unwrap_err(); // `a_b` or `ab`?
    assert_eq!(error.tool, None);
    let reason = |name| checked(name, "{}").unwrap_err().reason;
    assert_eq!(
        reason("read_files"),
        "there is no tool `read_files`; did you mean `read_file`? the tools are: read_file, list_files, a_b, ab"
    );
    assert_eq!(reason("fly"), "there is no tool `fly`; the tools are: read_file, list_files, a_b, ab");
    assert!(reason(&"x".repeat(10_000)).len() < 200);
}

#[test]
fn deeply_nested_arguments_are_handled() {
    let deep = format!("{{\"path\": {}", "[".repeat(100_000));
    assert!(checked("read_file", &deep).is_err());
}
