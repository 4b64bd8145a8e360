//! A tool call as plain text, in the form that Hermes and Qwen models were trained on.

use super::openai_types::CallFunction;

/// Returns a call as the model was told to write it. The arguments keep their bytes, so that a model that follows the
/// form finds its own answer again in the prompt, and the prompt cache still matches.
pub(super) fn call_as_text(call: &CallFunction<'_>) -> String {
    let name = serde_json::to_string(call.name).expect("a string is JSON");
    format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {}}}\n</tool_call>", call.arguments)
}

/// Returns the text of [`call_as_text`] up to where the arguments begin.
#[cfg(feature = "builtin")]
pub(crate) fn call_prefix(name: &str) -> String {
    let name = serde_json::to_string(name).expect("a string is JSON");
    format!("<tool_call>\n{{\"name\": {name}, \"arguments\": ")
}
