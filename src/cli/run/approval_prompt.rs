//! The texts of the question whether a tool call may run, and its answers.

use crate::{
    cli::{output::Palette, printable::literal},
    core::OrderedObject,
    pb::ProposedToolCall,
};

/// The user's answer about a proposed call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ApprovalAnswer {
    Yes,
    /// Yes, and this tool needs no question for the rest of the run, or commands with the same first words none in this
    /// directory.
    Always,
    No,
    /// No, with a reason that the model reads before it continues.
    NoWithReason(String),
}

/// Returns the line that asks for an answer, below the call.
pub(super) fn prompt(call: &ProposedToolCall) -> String {
    let always = match &call.command {
        None => " [a]lways this tool,".to_owned(),
        Some(command) if command.prefixes.is_empty() => ",".to_owned(),
        Some(command) => {
            let prefixes: Vec<String> = command.prefixes.iter().map(|prefix| literal(prefix)).collect();
            format!(" [a]lways `{}` in this directory,", prefixes.join("` and `"))
        }
    };
    format!("approve? [y]es [N]o{always} or type a reason to refuse: ")
}

pub(super) fn parse_answer(line: &str) -> ApprovalAnswer {
    let line = line.trim();
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => ApprovalAnswer::Yes,
        "a" | "always" => ApprovalAnswer::Always,
        "" | "n" | "no" => ApprovalAnswer::No,
        _ => ApprovalAnswer::NoWithReason(line.to_owned()),
    }
}

/// Formats a call for the user. All of it is plain text, whatever the model put into the call.
pub(super) fn format_proposal(call: &ProposedToolCall, palette: Palette) -> String {
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
    for line in call.preview.lines() {
        text.push_str("  ");
        text.push_str(&diff_line(line, palette));
        text.push('\n');
    }
    text
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
    use super::*;
    use crate::pb::CommandLine;

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
        ] {
            assert_eq!(parse_answer(line), expect, "{line:?}");
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
        };
        let text = format_proposal(&call, Palette::none()) + &prompt(&call);
        assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
    }
}
