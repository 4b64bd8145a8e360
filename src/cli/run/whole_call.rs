//! All of a proposed call as text, for a user who wants to see every line before the decision.

use kontekst_core::{OrderedJson, OrderedObject};
use kontekst_pb::ProposedToolCall;

use crate::cli::{
    output::Palette,
    printable::{literal, literal_line},
};

use super::approval_prompt::format_call;

/// Returns the call as the question shows it, and below that every argument with all of its lines, in the order of the
/// model. Plain text without colours: not every pager passes them on.
///
/// The lines of a value are indented and the names of the arguments are not, so that no value can look like another
/// argument.
pub(in crate::cli) fn whole_call(call: &ProposedToolCall) -> String {
    let mut text = format_call(call, Palette::none(), "");
    text.push_str("\nAll arguments:\n\n");
    let Some(OrderedObject(members)) = OrderedObject::parse(&call.arguments_json) else {
        push_value(&mut text, &call.arguments_json);
        return text;
    };
    for (name, value) in &members {
        let value = match value {
            OrderedJson::Scalar(serde_json::Value::String(value)) => value.clone(),
            value => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
        };
        let size = match value.lines().count() {
            0 | 1 => String::new(),
            lines => format!(" ({lines} lines, {} bytes)", value.len()),
        };
        text.push_str(&format!("{}{size}:\n", literal_line(name)));
        push_value(&mut text, &value);
    }
    text
}

fn push_value(text: &mut String, value: &str) {
    for line in literal(value).lines() {
        if !line.is_empty() {
            text.push_str("  ");
            text.push_str(line);
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(name: &str, arguments_json: &str, expect: &Expect) {
        let call = ProposedToolCall {
            name: name.to_owned(),
            arguments_json: arguments_json.to_owned(),
            preview: "(350 lines hidden)\n".to_owned(),
            ..ProposedToolCall::default()
        };
        expect.assert_eq(&whole_call(&call));
    }

    #[test]
    fn every_argument_is_shown_whole_and_as_plain_text() {
        check(
            "write_file",
            r#"{"path":"a.txt","content":"one\n\ntwo\u001b[2J\r\npath:\n"}"#,
            &expect![[r#"

            write_file path="a.txt" content="one\n\ntwo\u001b[2J\r\npath:\n"
              (350 lines hidden)

            All arguments:

            path:
              a.txt
            content (4 lines, 20 bytes):
              one

              two\u{1b}[2J\u{d}
              path:
        "#]],
        );
        check(
            "edit_file",
            r#"{"path":"a","old_str":"x\ny","new_str":""}"#,
            &expect![[r#"

            edit_file path="a" old_str="x\ny" new_str=""
              (350 lines hidden)

            All arguments:

            path:
              a
            old_str (2 lines, 3 bytes):
              x
              y
            new_str:
        "#]],
        );
        check(
            "run_command",
            r#"{"command":"cargo test -q && \\\n  git diff"}"#,
            &expect![[r#"

            run_command command="cargo test -q && \\\n  git diff"
              (350 lines hidden)

            All arguments:

            command (2 lines, 29 bytes):
              cargo test -q && \
                git diff
        "#]],
        );
        check(
            "fetch",
            r#"{"z":{"b":[1,true],"a":null},"a\u001b\nb":2}"#,
            &expect![[r#"

            fetch z={"b":[1,true],"a":null} a\u{1b}
            b=2
              (350 lines hidden)

            All arguments:

            z (7 lines, 45 bytes):
              {
                "b": [
                  1,
                  true
                ],
                "a": null
              }
            a\u{1b}\nb:
              2
        "#]],
        );
        check(
            "other",
            "not\u{1b} an object",
            &expect![[r#"

            other not\u{1b} an object
              (350 lines hidden)

            All arguments:

              not\u{1b} an object
        "#]],
        );
    }

    #[test]
    fn no_line_of_a_long_value_is_left_out() {
        let lines: Vec<String> = (0..5_000).map(|number| format!("line {number}")).collect();
        let arguments = serde_json::json!({"path": "a", "content": lines.join("\n")}).to_string();
        let call = ProposedToolCall { arguments_json: arguments, ..ProposedToolCall::default() };
        let text = whole_call(&call);
        let shown: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  line ")).collect();
        assert_eq!(shown.len(), lines.len());
    }
}
