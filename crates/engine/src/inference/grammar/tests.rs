//! Compares what a grammar accepts with what serde_json accepts.

use serde_json::{Value, json};

use super::Grammar;
use crate::Constraint as _;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "pattern": {"type": "string"},
            "line": {"type": "integer"},
            "ratio": {"type": ["number", "null"]},
            "deep": {"type": "boolean"},
            "kind": {"enum": ["file", "files", 1, 12, null]},
            "list": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
            "inner": {
                "type": "object",
                "properties": {"a\"b": {"type": "string"}},
                "required": ["a\"b"],
            },
            "free": {"type": "object"},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        },
        "required": ["path"],
    })
}

/// Returns true if all of `text` is accepted as one whole, byte by byte and in larger pieces.
#[track_caller]
fn accepts(schema: &Value, text: &str) -> bool {
    let by = |size: usize| {
        let mut grammar = Grammar::object(schema);
        let allowed = text.as_bytes().chunks(size).all(|piece| {
            let allowed = grammar.allows(piece);
            grammar.push(piece);
            allowed
        });
        allowed && grammar.is_complete()
    };
    let (one, five, whole) = (by(1), by(5), by(text.len().max(1)));
    assert_eq!((one, one), (five, whole), "{text}");
    one
}

#[test]
fn what_fits_is_accepted() {
    for text in [
        r#"{"path": "a"}"#,
        r#"{"path":"a"}"#,
        r#"{ "path": ""}"#,
        r#"{"line": -12, "path": "é日𝄞\n\u00e9\ud834\udd1e\\"}"#,
        r#"{"path": "x", "pattern": "y", "line": 0, "deep": true}"#,
        r#"{"path": "x", "ratio": -0.5e-3, "kind": "file"}"#,
        r#"{"path": "x", "ratio": null, "kind": "files"}"#,
        r#"{"path": "x", "ratio": 10, "kind": 1}"#,
        r#"{"path": "x", "kind": 12}"#,
        r#"{"path": "x", "kind": null, "list": []}"#,
        r#"{"path": "x", "list": [1, 2,3]}"#,
        r#"{"path": "x", "inner": {"a\"b": "c"}}"#,
        r#"{"path": "x", "free": {"any": [true, {"x": null}, "s", 1.5]}}"#,
        r#"{"path": "x", "free": {}, "map": {"a": 1, "b": 2}}"#,
        r#"{"path": "x", "either": "s"}"#,
        r#"{"path": "x", "either": ["s", "t"]}"#,
    ] {
        assert!(accepts(&schema(), text), "{text}");
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(value.is_object());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for text in [
        "{}",
        "[]",
        r#""path""#,
        r#"{"path": 1}"#,
        r#"{"path": "a""#,
        r#"{"path": "a"}}"#,
        r#"{"path": "a"} "#,
        r#"{"path": "a",}"#,
        r#"{"path": "a", "path": "b"}"#,
        r#"{"path": "a", "other": "b"}"#,
        r#"{"path": "a", "line": 1.5}"#,
        r#"{"path": "a", "line": 01}"#,
        r#"{"path": "a", "line": "1"}"#,
        r#"{"path": "a", "line": 1234567890123456789}"#,
        r#"{"path": "a", "ratio": 1e9999}"#,
        r#"{"path": "a", "ratio": .5}"#,
        r#"{"path": "a", "deep": truth}"#,
        r#"{"path": "a", "kind": "dir"}"#,
        r#"{"path": "a", "kind": 13}"#,
        r#"{"path": "a", "list": [1, 2, 3, 4]}"#,
        r#"{"path": "a", "list": ["1"]}"#,
        r#"{"path": "a", "list": [1, ]}"#,
        r#"{"path": "a", "inner": {}}"#,
        r#"{"path": "a", "map": {"a": "1"}}"#,
        r#"{"path": "a", "either": 1}"#,
        "{\"path\": \"a\nb\"}",
        r#"{"path": "\x"}"#,
        r#"{"path": "\ud834"}"#,
        r#"{"path": "\udd1e"}"#,
        r#"{"path":  "a"}"#,
    ] {
        assert!(!accepts(&schema(), text), "{text}");
    }
    let mut grammar = Grammar::object(&schema());
    grammar.push(b"{\"path\": \"");
    for bytes in [&b"\xff"[..], b"\xc0\x80", b"\xed\xa0\x80", b"\xf5", b"\x80", b"\x00"] {
        assert!(!grammar.allows(bytes), "{bytes:?}");
    }
    assert!(grammar.allows("日".as_bytes()) && grammar.allows(&"日".as_bytes()[..1]));
}

#[test]
fn what_is_written_under_a_grammar_can_be_read() {
    // Whoever writes whatever is allowed, in any order, ends up with JSON that fits.
    let mut seed = 7_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    for round in 0..25 {
        let (mut grammar, mut text) = (Grammar::object(&schema()), Vec::new());
        while !grammar.is_complete() {
            // Brackets and quotes that close are tried first now and then, so that it comes to an end.
            let closing = random(3) == 0;
            let allowed: Vec<u8> = (0..=255).filter(|byte| grammar.allows(&[*byte])).collect();
            assert!(!allowed.is_empty(), "stuck at {}", String::from_utf8_lossy(&text));
            let end = allowed.iter().copied().find(|byte| closing && b"\"}]".contains(byte));
            let byte = end.unwrap_or_else(|| allowed[random(allowed.len())]);
            grammar.push(&[byte]);
            text.push(byte);
            assert!(text.len() < 200_000, "no end");
        }
        let value: Value = serde_json::from_slice(&text)
            .unwrap_or_else(|error| panic!("round {round}: {error}: {}", String::from_utf8_lossy(&text)));
        assert!(value["path"].is_string(), "{value}");
    }
}

#[test]
fn any_schema_gives_an_object_and_nothing_grows_without_end() {
    for schema in
        [json!(null), json!({}), json!({"type": "string"}), json!({"properties": 7, "required": "x"})]
    {
        assert!(accepts(&schema, "{}") && accepts(&schema, r#"{"a": [1, "b"]}"#), "{schema}");
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..200 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    assert!(accepts(&deep, r#"{"a": {"a": {}}}"#));
    let nested = "[".repeat(100);
    assert!(!accepts(&json!({}), &format!("{{\"a\": {nested}")));
    let mut grammar = Grammar::object(&json!({}));
    grammar.push(b"{\"a\": ");
    for _ in 0..1000 {
        grammar.push(b"[");
    }
    assert!(grammar.allows(b"1") && !grammar.allows(b"["));
    let either: Vec<Value> = (0..1000).map(|_| json!({"type": "string"})).collect();
    assert!(accepts(&json!({"type": "object", "properties": {"a": {"anyOf": either}}}), r#"{"a": "b"}"#));
}

#[test]
fn a_value_is_one_of_several_objects() {
    let object = |tool: &str, member: &str| {
        json!({
            "type": "object",
            "properties": {"tool": {"const": tool}, (member): {"type": "string"}},
            "required": ["tool", member],
            "additionalProperties": false,
        })
    };
    let schema =
        json!({"anyOf": [object("read", "path"), object("reread", "path"), object("answer", "text")]});
    let is_whole = |text: &str| {
        let mut grammar = Grammar::value(&schema);
        grammar.advance(text.as_bytes()) && grammar.is_complete()
    };
    assert!(is_whole(r#"{"tool": "read", "path": "a"}"#));
    assert!(is_whole(r#"{"tool": "answer", "text": "It is 7."}"#));
    for text in [
        r#"{"tool": "read", "text": "a"}"#,
        r#"{"tool": "write", "path": "a"}"#,
        r#"{"tool": "answer"}"#,
        r#"{"path": "a"}"#,
        r#""read""#,
    ] {
        assert!(!is_whole(text), "{text}");
    }
}

/// Returns true if `text` is a whole value that fits.
#[track_caller]
fn fits(schema: &Value, text: &str) -> bool {
    let mut grammar = Grammar::value(schema);
    grammar.advance(text.as_bytes()) && {
        // A number ends with what comes after it.
        let mut list = Grammar::value(&json!({"type": "array", "items": schema}));
        list.advance(format!("[{text}]").as_bytes()) && list.is_complete()
    }
}

#[test]
fn integers_stay_in_their_range() {
    let ranges = [
        (json!({"minimum": 3, "maximum": 120}), 3, 120),
        (json!({"minimum": -20, "maximum": -3}), -20, -3),
        (json!({"minimum": -7, "maximum": 250}), -7, 250),
        (json!({"exclusiveMinimum": 9, "exclusiveMaximum": 11}), 10, 10),
        (json!({"minimum": 0.5, "maximum": 99.5}), 1, 99),
        (json!({"minimum": 95}), 95, i64::MAX),
        (json!({"maximum": 0}), i64::MIN, 0),
    ];
    for (mut schema, min, max) in ranges {
        schema["type"] = json!("integer");
        for value in -1200..1200_i64 {
            assert_eq!(fits(&schema, &value.to_string()), (min..=max).contains(&value), "{value} {schema}");
        }
        assert_eq!(fits(&schema, "123456789012345678"), max == i64::MAX, "{schema}");
    }
    let schema = json!({"type": "integer", "minimum": 3, "maximum": 120});
    let mut grammar = Grammar::value(&schema);
    let first: String = (b'-'..=b'9').filter(|byte| grammar.allows(&[*byte])).map(char::from).collect();
    assert_eq!(first, "123456789", "no text can begin that no integer ends");
    for text in ["03", "3.0", "3e1", "-3", "--3"] {
        assert!(!fits(&schema, text), "{text}");
    }
    assert!(fits(&json!({"type": "number", "minimum": 3}), "2.5"), "not held");
}

#[test]
fn texts_keep_their_length() {
    let schema = json!({"type": "string", "minLength": 2, "maxLength": 3});
    for text in [r#""ab""#, r#""abc""#, r#""é日𝄞""#, r#""\n\u00e9""#, r#""\ud834\udd1ea""#, r#""\"a\\""#]
    {
        assert!(fits(&schema, text), "{text}");
    }
    for text in [r#""""#, r#""a""#, r#""abcd""#, r#""é日𝄞a""#, r#""\ud834\udd1e""#, r#""abc\n""#] {
        assert!(!fits(&schema, text), "{text}");
    }
    assert!(fits(&json!({"type": "string", "maxLength": 0}), r#""""#));
}

#[test]
fn all_of_several_schemas_hold() {
    let named = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let aged = json!({
        "type": "object", "required": ["age"],
        "properties": {"age": {"type": "integer", "minimum": 1}, "name": {"maxLength": 3}},
    });
    let schema = json!({"allOf": [named, aged], "description": "both"});
    assert!(fits(&schema, r#"{"name": "Ann", "age": 7}"#));
    for text in [
        r#"{"name": "Anna", "age": 7}"#,
        r#"{"name": "Ann"}"#,
        r#"{"age": 7}"#,
        r#"{"name": "Ann", "age": 0}"#,
    ] {
        assert!(!fits(&schema, text), "{text}");
    }
    assert_eq!(Grammar::not_held(&schema), None);
    assert!(accepts(&schema, r#"{"name": "Ann", "age": 7}"#));
    let contradiction = json!({"allOf": [{"type": "string"}, {"type": "integer"}]});
    assert_eq!(Grammar::not_held(&contradiction).as_deref(), Some("allOf"));
    let mut deep = json!({"type": "string"});
    for _ in 0..200 {
        deep = json!({"allOf": [deep.clone(), {"properties": {"a": deep}}]});
        if deep.to_string().len() > 100_000 {
            break;
        }
    }
    assert!(Grammar::value(&deep).advance(b"\""));
}

#[test]
fn what_no_grammar_holds_is_named_with_its_place() {
    let check = |schema: Value, expected: Option<&str>| {
        assert_eq!(Grammar::not_held(&schema).as_deref(), expected, "{schema}");
    };
    check(schema(), None);
    check(
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}),
        Some("pattern in properties/a"),
    );
    check(json!({"type": "array", "items": {"type": "string", "format": "uuid"}}), Some("format in items"));
    check(json!({"type": "number", "minimum": 1}), Some("minimum"));
    check(json!({"type": ["integer", "null"], "maximum": 1}), None);
    check(json!({"type": "array", "uniqueItems": true}), Some("uniqueItems"));
    check(json!({"type": "array", "prefixItems": []}), Some("prefixItems"));
    check(json!({"anyOf": [{"type": "null"}, {"not": {}}]}), Some("not in anyOf"));
    check(json!({"anyOf": [{"type": "null"}], "type": "object"}), Some("type"));
    check(json!({"$ref": "#/missing"}), Some("$ref"));
    check(json!({"type": "object", "required": ["a"]}), Some("required"));
    check(json!({"type": "any"}), Some("type"));
    check(json!({"minimum": 1}), Some("minimum"));
    check(json!({"title": "t", "description": "d", "default": 1, "enum": [1, 2]}), None);
    let members: serde_json::Map<String, Value> =
        (0..5000).map(|at| (at.to_string(), json!({"type": "string"}))).collect();
    check(json!({"type": "object", "properties": members}), Some("its size"));
}
