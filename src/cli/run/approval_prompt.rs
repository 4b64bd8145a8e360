//! The texts of the question whether a tool call may run, and its answers.

use kontekst_core::OrderedObject;
use kontekst_pb::ProposedToolCall;

use crate::cli::{output::Palette, printable::literal};

/// The user's answer about a proposed call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ApprovalAnswer {
    Yes,
    /// Yes, and a rule of the policy allows calls like this one in this directory from now on.
    Always,
    No,
    /// No, with a reason that the model reads before it continues.
    NoWithReason(String),
}

/// A line that was typed below a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    Answer(ApprovalAnswer),
    /// The user wants to see all of the call first.
    ShowAll,
    /// The user wants to write the reason of a refusal in an editor.
    WriteReason,
    /// The user wants to know what the answers mean.
    Explain,
}

/// Returns the line that asks for an answer, below the call.
pub(super) fn prompt(call: &ProposedToolCall) -> String {
    let always = match &call.rules[..] {
        [] => String::new(),
        rules => format!(" [a]lways {} in this directory", quoted(rules)),
    };
    format!("approve? [y]es [N]o{always} [v]iew all [e]dit a reason [?], or type a reason to refuse: ")
}

/// Explains every answer to the question about this call. `refusal` says what a refusal without a reason does.
pub(super) fn help(call: &ProposedToolCall, refusal: &str) -> String {
    let always = match &call.rules[..] {
        [] => String::new(),
        rules => format!(
            "\n  a           Run it, and write a rule into policy.toml that allows {} in this directory, in later runs too. Where a\n              caution is shown you are still asked.",
            quoted(rules)
        ),
    };
    format!(
        "
  y           Run this call, with exactly these arguments.
  n           {refusal} An empty line means the same.{always}
  v           Show all of the call in the pager that $PAGER names, then ask again.
  e           Refuse the call with a longer reason, written in the editor that $VISUAL or $EDITOR names.
  ?           Show this help, then ask again.
  other text  Refuse the call. The model reads the text as the reason and goes on.
  Ctrl-C      End the run.

"
    )
}

/// Returns the rules in quotation marks, joined by `and`.
fn quoted(rules: &[String]) -> String {
    let rules: Vec<String> = rules.iter().map(|rule| format!("`{}`", literal(rule))).collect();
    rules.join(" and ")
}

pub(super) fn parse_answer(line: &str) -> TypedLine {
    let line = line.trim();
    TypedLine::Answer(match line.to_ascii_lowercase().as_str() {
        "v" | "view" => return TypedLine::ShowAll,
        "e" | "edit" => return TypedLine::WriteReason,
        "?" => return TypedLine::Explain,
        "y" | "yes" => ApprovalAnswer::Yes,
        "a" | "always" => ApprovalAnswer::Always,
        "" | "n" | "no" => ApprovalAnswer::No,
        _ => ApprovalAnswer::NoWithReason(line.to_owned()),
    })
}

/// Formats a call for the user. All of it is plain text, whatever the model put into the call.
pub(super) fn format_proposal(call: &ProposedToolCall, palette: Palette) -> String {
    format_call(call, palette, &palette.bold(" type v to see all of it"))
}

/// Formats a call. `after_hidden` follows each line that stands for lines which the preview leaves out.
pub(super) fn format_call(call: &ProposedToolCall, palette: Palette, after_hidden: &str) -> String {
    let who = match call.worker_id.as_str() {
        "" => String::new(),
        worker => format!("worker {}: ", literal(worker)),
    };
    let name = palette.bold(&literal(&call.name));
    let mut text = format!("\n{who}{name} {}\n", format_arguments(&call.arguments_json, MAX_VALUE_CHARS));
    if !call.caution.is_empty() {
        text.push_str(&palette.red(&format!("  caution: {}", literal(&call.caution))));
        text.push('\n');
    }
    if !call.asked_by.is_empty() {
        text.push_str(&format!("  {}\n", literal(&call.asked_by)));
    }
    for line in call.preview.lines() {
        text.push_str("  ");
        text.push_str(&diff_line(line, palette));
        if counts_hidden_lines(line) {
            text.push_str(after_hidden);
        }
        text.push('\n');
    }
    text
}

/// Returns true for a line of a diff that stands for lines which were left out, such as `(350 lines hidden)`.
fn counts_hidden_lines(line: &str) -> bool {
    let begins_with_count =
        line.strip_prefix('(').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    begins_with_count && (line.ends_with(" lines hidden)") || line.ends_with(", all hidden)"))
}

fn diff_line(line: &str, palette: Palette) -> String {
    let shown = literal(line);
    match line.as_bytes().first() {
        Some(b'+') => palette.green(&shown),
        Some(b'-') => palette.red(&shown),
        Some(b'@') => palette.cyan(&shown),
        _ => shown,
    }
}

/// The part of each argument that is shown above the preview, which shows all of it.
const MAX_VALUE_CHARS: usize = 200;

/// Formats the arguments on one line, in the order in which the model wrote them. A value of more than `max` characters is cut and followed by the number of the
/// remaining bytes.
pub(super) fn format_arguments(json: &str, max: usize) -> String {
    let Some(OrderedObject(members)) = OrderedObject::parse(json) else {
        return literal(&json.chars().take(max).collect::<String>());
    };
    let shown = members.iter().map(|(name, value)| {
        let value = value.to_string();
        let cut: String = value.chars().take(max).collect();
        let more = value.len() - cut.len();
        let more = if more > 0 { format!("… ({more} more bytes)") } else { String::new() };
        format!("{}={}{more}", literal(name), literal(&cut))
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use kontekst_pb::CommandLine;

    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for (line, expect) in [
            ("y\n", ApprovalAnswer::Yes),
            ("YES\n", ApprovalAnswer::Yes),
            ("a\n", ApprovalAnswer::Always),
            ("\n", ApprovalAnswer::No),
            ("", ApprovalAnswer::No),
            ("n\n", ApprovalAnswer::No),
            ("yep\n", ApprovalAnswer::NoWithReason("yep".into())),
            ("wrong file\n", ApprovalAnswer::NoWithReason("wrong file".into())),
            ("view it\n", ApprovalAnswer::NoWithReason("view it".into())),
            ("??\n", ApprovalAnswer::NoWithReason("??".into())),
        ] {
            assert_eq!(parse_answer(line), TypedLine::Answer(expect), "{line:?}");
        }
        for line in ["v\n", "V\n", " view \n"] {
            assert_eq!(parse_answer(line), TypedLine::ShowAll, "{line:?}");
        }
        assert_eq!(parse_answer("e\n"), TypedLine::WriteReason);
        assert_eq!(parse_answer("?\n"), TypedLine::Explain);
    }

    #[test]
    fn the_question_names_its_answers_and_the_help_explains_them() {
        let check = |rules: &[&str], expect: &Expect| {
            let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
            let call = ProposedToolCall { name: "tool".into(), rules, ..ProposedToolCall::default() };
            expect.assert_eq(&format!(
                "{}\n{}",
                prompt(&call).trim_end(),
                help(&call, "Refuse the call and end the run.")
            ));
        };
        check(
            &["tool"],
            &expect![[r#"
                approve? [y]es [N]o [a]lways `tool` in this directory [v]iew all [e]dit a reason [?], or type a reason to refuse:

                  y           Run this call, with exactly these arguments.
                  n           Refuse the call and end the run. An empty line means the same.
                  a           Run it, and write a rule into policy.toml that allows `tool` in this directory, in later runs too. Where a
                              caution is shown you are still asked.
                  v           Show all of the call in the pager that $PAGER names, then ask again.
                  e           Refuse the call with a longer reason, written in the editor that $VISUAL or $EDITOR names.
                  ?           Show this help, then ask again.
                  other text  Refuse the call. The model reads the text as the reason and goes on.
                  Ctrl-C      End the run.

            "#]],
        );
        check(
            &["run_command(cargo test)", "run_command(git diff)"],
            &expect![[r#"
                approve? [y]es [N]o [a]lways `run_command(cargo test)` and `run_command(git diff)` in this directory [v]iew all [e]dit a reason [?], or type a reason to refuse:

                  y           Run this call, with exactly these arguments.
                  n           Refuse the call and end the run. An empty line means the same.
                  a           Run it, and write a rule into policy.toml that allows `run_command(cargo test)` and `run_command(git diff)` in this directory, in later runs too. Where a
                              caution is shown you are still asked.
                  v           Show all of the call in the pager that $PAGER names, then ask again.
                  e           Refuse the call with a longer reason, written in the editor that $VISUAL or $EDITOR names.
                  ?           Show this help, then ask again.
                  other text  Refuse the call. The model reads the text as the reason and goes on.
                  Ctrl-C      End the run.

            "#]],
        );
        check(
            &[],
            &expect![[r#"
            approve? [y]es [N]o [v]iew all [e]dit a reason [?], or type a reason to refuse:

              y           Run this call, with exactly these arguments.
              n           Refuse the call and end the run. An empty line means the same.
              v           Show all of the call in the pager that $PAGER names, then ask again.
              e           Refuse the call with a longer reason, written in the editor that $VISUAL or $EDITOR names.
              ?           Show this help, then ask again.
              other text  Refuse the call. The model reads the text as the reason and goes on.
              Ctrl-C      End the run.

        "#]],
        );
    }

    #[test]
    fn lines_that_a_diff_leaves_out_are_said_to_be_shown_by_v() {
        let shown = |line: &str| {
            let call = ProposedToolCall { preview: line.to_owned(), ..ProposedToolCall::default() };
            format_proposal(&call, Palette::none()).contains("type v to see all of it")
        };
        for line in [
            "(350 lines hidden)",
            "(12 changed lines hidden)",
            "(3 lines in place of 9 from line 1, all hidden)",
        ] {
            assert!(shown(line), "{line}");
        }
        for line in
            ["+(350 lines hidden)", " (350 lines hidden)", "(cd x; print lines hidden)", "(a new empty file)"]
        {
            assert!(!shown(line), "{line}");
        }
    }

    #[test]
    fn arguments_are_shown_in_the_order_of_the_model() {
        let json = r#"{"path": "a", "old_str":"b","new_str":{"z":1,"y":2}}"#;
        assert_eq!(format_arguments(json, 200), r#"path="a" old_str="b" new_str={"z":1,"y":2}"#);
        assert_eq!(format_arguments("not json", 3), "not");
    }

    #[test]
    fn a_proposal_is_plain_text() {
        let call = ProposedToolCall {
            call_id: "1".into(),
            name: "write\u{1b}[2Jfile".into(),
            arguments_json: r#"{"path":"a\u001b]0;x\u0007b","content":"\u202eevil"}"#.into(),
            preview: "+\u{9b}31mred\r\n-x".into(),
            caution: "\u{1b}c".into(),
            worker_id: "\u{1b}[3".into(),
            only_reads: false,
            command: Some(CommandLine { prefixes: vec!["a\u{1b}b".into()] }),
            asked_by: "\u{1b}b".into(),
            rules: vec!["a\u{1b}b".into()],
            unchanged_since_parked: None,
        };
        let text = format_proposal(&call, Palette::none()) + &prompt(&call) + &help(&call, "");
        assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
    }
}
