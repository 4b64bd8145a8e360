//! The examination counts what is right, and nothing else.

use serde_json::json;

use super::*;

/// Answers from the samples themselves, but for every tenth.
struct Cheat {
    samples: Vec<Sample>,
    asked: usize,
}

impl Model for Cheat {
    fn answer(&mut self, conversation: &[(Role, String)]) -> String {
        self.asked += 1;
        if self.asked.is_multiple_of(10) {
            return "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\"".to_owned();
        }
        let known = self.samples.iter().find(|sample| {
            sample.conversation.len() > conversation.len()
                && sample.conversation[..conversation.len()] == *conversation
        });
        known.map_or_else(String::new, |sample| sample.conversation[conversation.len()].1.clone())
    }
}

#[test]
fn right_and_wrong_are_counted() {
    let mut model = Cheat { samples: samples(90, SEED), asked: 0 };
    let all = model.samples.len();
    let report = held_out(&mut model, 90, SEED);
    assert_eq!(report.calls().all, 90);
    assert_eq!(report.answers().all, 90);
    assert_eq!(report.broken, (all + 90) / 10);
    let requests: usize = report.requests.values().map(|row| row.right).sum();
    assert_eq!(requests + report.answers().right, all + 90 - report.broken);
    assert!(report.wrong(0).is_empty());
    assert!(report.wrong(1).contains("right: "));
    assert_eq!(report.wrong(all).matches("--- request").count(), all - requests);
    assert!(report.to_string().contains("all calls"), "{report}");
}

#[test]
fn only_sound_calls_are_calls() {
    let call = |json: &str| called(&format!("<tool_call>\n{json}\n</tool_call>"));
    let sound = r#"{"name": "read_file", "arguments": {"path": "a", "start_line": 1}}"#;
    assert_eq!(call(sound), Said::Call(serde_json::from_str(sound).unwrap()));
    for broken in [
        r#"{"name": "read_file", "arguments": {"path": 1}}"#,
        r#"{"name": "read_file", "arguments": {}}"#,
        r#"{"name": "read_file", "arguments": {"path": "a", "start_line": "1"}}"#,
        r#"{"name": "run", "arguments": {"path": "a"}}"#,
        r#"{"name": "list_files", "arguments": {"pattern": "a", "path": "b"}}"#,
        r#"{"name": "list_files", "arguments": {"pattern": "a}}"#,
    ] {
        assert_eq!(call(broken), Said::Broken, "{broken}");
    }
    assert_eq!(called("I cannot."), Said::Text);
}

#[test]
fn lines_are_requests_and_calls() {
    let lines = parse("# all\n\nread a.txt\t{\"name\": \"x\"}\na\\nb\tdecline\n").unwrap();
    assert_eq!(
        lines[0],
        Line { request: "read a.txt".into(), expected: Expected::Call(json!({"name": "x"})) }
    );
    assert_eq!(lines[1], Line { request: "a\nb".into(), expected: Expected::Decline });
    assert_eq!(parse("x").unwrap_err(), "line 1 has no tab");
    assert!(parse("x\ty").unwrap_err().starts_with("line 1: "));
}

#[test]
fn a_phrasing_has_no_names() {
    let call = json!({"name": "edit_file", "arguments": {"path": "Notes.txt", "old_str": "big dog", "new_str": "x"}});
    assert_eq!(phrasing("Replace big dog with \"x\" in Notes.txt!", Some(&call)), "replace _ with _ in _");
    let call = json!({"name": "list_files", "arguments": {"pattern": "src/lib/*.rs"}});
    assert_eq!(phrasing("rust files in src/lib?", Some(&call)), "rust files in _");
    assert_eq!(phrasing("show lines 3 to 9", None), "show lines _ to _");
}

#[test]
fn the_handwritten_file_is_understood() {
    let lines = parse(&std::fs::read_to_string(handwritten_file()).unwrap()).unwrap();
    assert!(lines.len() >= 100, "{}", lines.len());
    for line in &lines {
        assert!(!matches!(&line.expected, Expected::Call(call) if !is_sound(call)), "{line:?}");
    }
}
