//! The client's result of a tool call, as the model reads it. Pure.

use serde_json::Value;

use kontekst_core::{ToolFailureKind, ToolOutcome};
use kontekst_pb::roz::ToolResult;

/// The largest result, in bytes, that is used whole. A longer one loses its middle.
const MAX_BYTES: usize = 1024 * 1024;

/// Converts a client's result.
///
/// The client may send the result as JSON. A JSON string is replaced by its text. What the client reports about
/// the call, such as an exit code, is added after the text.
pub(super) fn tool_outcome(result: ToolResult) -> ToolOutcome {
    let ToolResult { success, result, exit_code, truncated, duration_ms, .. } = result;
    let mut text = match serde_json::from_str::<Value>(&result) {
        Ok(Value::String(text)) if success => text,
        _ => result,
    };
    cut_middle(&mut text);
    let mut notes = Vec::new();
    notes.extend(exit_code.map(|code| format!("exit code {code}")));
    notes.extend(truncated.then(|| "the client cut the output".to_owned()));
    notes.extend(duration_ms.filter(|&ms| ms >= 0).map(|ms| format!("took {ms} ms")));
    if !notes.is_empty() {
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{separator}[{}]", notes.join(", "));
    }
    if success { ToolOutcome::done(text) } else { ToolOutcome::failed(ToolFailureKind::Other, text) }
}

/// Replaces the middle of a text longer than [`MAX_BYTES`] with a note.
fn cut_middle(text: &mut String) {
    if text.len() <= MAX_BYTES {
        return;
    }
    let head = text.floor_char_boundary(MAX_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_BYTES / 2);
    let note = format!("\n[{} bytes were left out here]\n", tail - head);
    text.replace_range(head..tail, &note);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(success: bool, result: &str) -> ToolResult {
        ToolResult { success, result: result.to_owned(), ..ToolResult::default() }
    }

    #[test]
    fn results_are_json_or_text() {
        let done = |text: &str| ToolOutcome::done(text.to_owned());
        for (given, seen) in [
            ("plain", "plain"),
            (r#""quoted\n""#, "quoted\n"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("[1, 2]", "[1, 2]"),
            ("", ""),
        ] {
            assert_eq!(tool_outcome(result(true, given)), done(seen));
        }
        assert_eq!(
            tool_outcome(result(false, r#""why""#)),
            ToolOutcome::failed(ToolFailureKind::Other, r#""why""#)
        );
    }

    #[test]
    fn what_the_client_says_about_a_call_reaches_the_model() {
        let all = ToolResult {
            exit_code: Some(3),
            truncated: true,
            duration_ms: Some(12),
            ..result(false, "no such file")
        };
        let text = "no such file\n[exit code 3, the client cut the output, took 12 ms]";
        assert_eq!(tool_outcome(all), ToolOutcome::failed(ToolFailureKind::Other, text));
        let odd = ToolResult { duration_ms: Some(-1), ..result(true, "x") };
        assert_eq!(tool_outcome(odd), ToolOutcome::done("x".to_owned()));
    }

    #[test]
    fn a_result_that_is_too_large_keeps_its_ends() {
        let outcome = tool_outcome(result(true, &format!("{}€end", "é".repeat(2_000_000))));
        let text = outcome.text();
        assert!(!outcome.is_error());
        assert!(text.len() < MAX_BYTES + 100 && text.starts_with("éé") && text.ends_with("€end"));
        assert!(text.contains(" bytes were left out here]"));
    }
}
