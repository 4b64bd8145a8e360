//! Steps against what models write, cut at every byte.

use serde_json::{Value, json};

use kontekst_core::{CallId, Message, ToolChoice, ToolDef, ToolResult};

use super::{StepParser, answer_as_step, call_as_step, response_format, result_as_text, system_with_steps};

use crate::{FinishReason, StepOptions, chat::openai_types::CallFunction};

fn tool(name: &str, parameters: Value) -> ToolDef {
    ToolDef { name: name.to_owned(), description: format!("Does {name}."), parameters, ..ToolDef::default() }
}

fn edit() -> ToolDef {
    let text = || json!({"type": "string"});
    tool(
        "edit",
        json!({
            "type": "object",
            "properties": {"new": text(), "old": text(), "count": {"type": "integer"}, "path": text()},
            "required": ["path", "old", "new"],
        }),
    )
}

/// Returns the text and the call of an answer that arrives in these pieces.
fn read(pieces: &[&str], finish: FinishReason) -> (String, Option<String>) {
    let (mut parser, mut out) = (StepParser::default(), String::new());
    for piece in pieces {
        parser.push(piece, &mut out);
    }
    let call = parser.finish(finish, &mut out);
    (out, call.map(|call| format!("{}({})", call.name, call.arguments)))
}

#[track_caller]
fn check(raw: &str, finish: FinishReason, text: &str, call: Option<&str>) {
    let expected = (text.to_owned(), call.map(str::to_owned));
    let ends: Vec<usize> = (0..=raw.len()).filter(|&at| raw.is_char_boundary(at)).collect();
    for &at in &ends {
        assert_eq!(read(&[&raw[..at], &raw[at..]], finish), expected, "cut at {at} of {raw}");
    }
    let single: Vec<&str> = ends.windows(2).map(|ends| &raw[ends[0]..ends[1]]).collect();
    assert_eq!(read(&single, finish), expected, "{raw}");
}

#[test]
fn a_step_is_a_call_or_an_answer() {
    for (raw, text, call) in [
        (r#"{"tool": "read", "path": "a b"}"#, "", Some(r#"read({"path": "a b"})"#)),
        // The arguments keep the bytes that the model wrote.
        (
            "{ \"tool\" : \"read\" ,\n \"path\":\"a\", \"n\": 1.0 }",
            "",
            Some("read({\"path\":\"a\", \"n\": 1.0 })"),
        ),
        (r#"{"tool": "list"}"#, "", Some("list({})")),
        (r#"{"path": "a", "tool": "read"}"#, "", Some(r#"read({"path":"a"})"#)),
        (r#"{"path": "a", "tool": "read", "from": 1}"#, "", Some(r#"read({"path":"a","from":1})"#)),
        (
            r#"{"tool": "answer", "text": "It is 7.\n\"Ü\" \u00e9 \ud83d\ude00 \/ 日本"}"#,
            "It is 7.\n\"Ü\" é 😀 / 日本",
            None,
        ),
        (r#"{"text": "late", "tool": "answer"}"#, "late", None),
        (r#"{"tool": "answer", "text": ""}"#, "", None),
        // An answer that begins like a call is one.
        (r#"{"tool": "answers", "text": "x"}"#, "", Some(r#"answers({"text": "x"})"#)),
    ] {
        check(raw, FinishReason::Stop, text, call);
    }
}

#[test]
fn what_is_no_step_is_text() {
    for raw in ["Hello.", "  hi", "```json\n{}\n```", "{\"name\": \"read\"}", "{", "", "[1]"] {
        check(raw, FinishReason::Stop, raw, None);
    }
}

#[test]
fn a_step_that_was_cut_has_no_call_and_keeps_the_text_of_an_answer() {
    check(r#"{"tool": "write", "path": "a", "content": "half"#, FinishReason::Length, "", None);
    check(r#"{"tool": "answer", "text": "half \u00"#, FinishReason::Length, "half ", None);
    check(r#"{"tool": "answer", "text": "half \ud83d"#, FinishReason::Length, "half ", None);
}

#[test]
fn the_schema_has_one_alternative_for_each_tool_and_the_order_of_the_definition() {
    let format = response_format(
        &[edit(), tool("list", json!({"type": "object"}))],
        &ToolChoice::Auto,
        &StepOptions::default(),
    );
    let text = |name: &str, rest: &str| {
        format!(
            r#"{{"type":"object","properties":{{"tool":{{"const":"{name}"}}{rest},"additionalProperties":false}}"#
        )
    };
    let alternatives = [
        text(
            "edit",
            r#","path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"},"count":{"type":"integer"}},"required":["tool","path","old","new"]"#,
        ),
        text("list", r#"},"required":["tool"]"#),
        text("answer", r#","text":{"type":"string"}},"required":["tool","text"]"#),
    ];
    assert_eq!(
        format.get(),
        format!(
            r#"{{"type":"json_schema","json_schema":{{"name":"step","strict":true,"schema":{{"anyOf":[{}]}}}}}}"#,
            alternatives.join(",")
        )
    );
}

/// Returns the tools that may be called under a schema, and `answer` if it may be given.
fn names(format: &str) -> Vec<String> {
    let format: Value = serde_json::from_str(format).unwrap();
    let alternatives = format["json_schema"]["schema"]["anyOf"].as_array().unwrap();
    alternatives.iter().map(|one| one["properties"]["tool"]["const"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_schema_has_what_may_be_chosen_now() {
    let tools = [edit(), tool("list", json!({"type": "object"}))];
    let list = || ToolChoice::Function("list".to_owned());
    for (choice, withheld, is_more, expected) in [
        (ToolChoice::Auto, &[][..], false, vec!["edit", "list", "answer"]),
        (ToolChoice::Auto, &["list", "gone"], true, vec!["edit", "more_tools", "done", "answer"]),
        (ToolChoice::Auto, &["list", "edit"], false, vec!["answer"]),
        (ToolChoice::None, &[], true, vec!["answer"]),
        (ToolChoice::Required, &["edit"], true, vec!["edit", "list"]),
        (list(), &["list"], true, vec!["list"]),
    ] {
        let withheld_tools = withheld.iter().map(|&name: &&str| name.to_owned()).collect();
        let options = StepOptions { withheld_tools, more: is_more, done: is_more, ..StepOptions::default() };
        assert_eq!(
            names(response_format(&tools, &choice, &options).get()),
            expected,
            "{choice:?} {options:?}"
        );
    }
}

#[test]
fn the_content_of_a_whole_file_is_no_part_of_its_step() {
    let text = || json!({"type": "string"});
    let parameters = json!({
        "type": "object", "properties": {"path": text(), "content": text()}, "required": ["path", "content"],
    });
    let write = ToolDef { whole_file: Some("content"), ..tool("write", parameters) };
    let format = response_format(std::slice::from_ref(&write), &ToolChoice::Auto, &StepOptions::default());
    assert!(
        format.get().contains(r#""path":{"type":"string"}},"required":["tool","path"]"#),
        "{}",
        format.get()
    );
    let text = system_with_steps("", &[write]);
    assert!(text.contains(r#"{"tool": "write", "path": "..."}  Create a file"#), "{text}");
    assert!(text.contains(r#"Steps: {"tool": "write", "path": "notes.md"}, then {"tool": "done""#), "{text}");
}

#[test]
fn a_tool_that_collides_with_the_form_of_steps_is_not_offered() {
    let colliding = tool("pick", json!({"type": "object", "properties": {"tool": {"type": "string"}}}));
    let answer = tool("answer", json!({"type": "object"}));
    let none = response_format(&[], &ToolChoice::Auto, &StepOptions::default());
    assert_eq!(
        response_format(&[colliding.clone(), answer.clone()], &ToolChoice::Required, &StepOptions::default())
            .get(),
        none.get()
    );
    assert_eq!(system_with_steps("", &[colliding, answer]), system_with_steps("", &[]));
}

#[test]
fn the_tools_are_shown_as_the_model_is_to_write_them() {
    let text = system_with_steps("Be brief.", &[edit()]);
    assert!(text.starts_with("Be brief.\n\n# Steps\n"), "{text}");
    let line = "{\"tool\": \"edit\", \"path\": \"...\", \"old\": \"...\", \"new\": \"...\"}  Does edit. Optional: count.\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn what_the_model_wrote_is_sent_back_as_it_was() {
    let call = |name, arguments: &'static str| CallFunction { name, arguments: arguments.into() };
    for raw in [r#"{"tool": "read", "path": "a b"}"#, r#"{"tool": "list"}"#] {
        let (_, found) = read(&[raw], FinishReason::Stop);
        let (name, arguments) = found.as_ref().unwrap().strip_suffix(')').unwrap().split_once('(').unwrap();
        assert_eq!(call_as_step(&CallFunction { name, arguments: arguments.into() }, None), raw);
    }
    assert_eq!(call_as_step(&call("f", "{ }"), Some("content")), r#"{"tool": "f"}"#);
    let written = call("write", r#"{"path": "a", "content": "x"}"#);
    assert_eq!(call_as_step(&written, Some("content")), r#"{"tool": "write", "path": "a"}"#);
    assert_eq!(answer_as_step("a \"b\""), r#"{"tool": "answer", "text": "a \"b\""}"#);
}

#[test]
fn the_request_follows_each_result_and_a_long_one_is_cut_at_its_start() {
    let result = ToolResult {
        call_id: CallId::new("a"),
        name: "read".to_owned(),
        output: "1: x".to_owned(),
        is_error: false,
    };
    let message = Message::result(result);
    assert_eq!(result_as_text(&message, None), "Result of read:\n1: x");
    let text = result_as_text(&message, Some("Fix it."));
    assert!(text.ends_with(
        "\n\nTake the next step, or end the task if everything in the request is done now. The request: Fix it."
    ));
    let text = result_as_text(&message, Some("line 1 of the data\n\nFix it."));
    assert!(text.ends_with("The request: Fix it."), "{text}");
    let text = result_as_text(&message, Some(&format!("{}Fix it.", "é".repeat(5000))));
    assert!(text.len() < 450 && text.ends_with("éFix it."), "{text}");
}
