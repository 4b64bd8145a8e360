//! Tools for chat templates without tool support: they are described in the system text, and called and answered in
//! plain text.
//!
//! Source of the form: the prompts that Hermes and Qwen models were trained on. Other models follow it too.

mod call;
mod tool_call_parser;
mod wrappers;

#[cfg(feature = "builtin")]
pub(crate) use super::call_text::call_prefix;
pub(crate) use tool_call_parser::ToolCallParser;
pub(super) use wrappers::THOUGHTS;

use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

use kontekst_core::{CallId, ToolCall, ToolDef};

use crate::{FinishReason, Turn};

use super::messages;

/// Returns the system text followed by the tool definitions. The same tools always give the same bytes.
pub(crate) fn system_with_tools(system: &str, tools: &[ToolDef]) -> String {
    let mut text = String::with_capacity(system.len() + 1024);
    if !system.is_empty() {
        text.push_str(system);
        text.push_str("\n\n");
    }
    text.push_str(
        "# Tools\n\nYou can call these functions. Their signatures are within <tools></tools>:\n<tools>\n",
    );
    for tool in messages::tools(tools) {
        text.push_str(&serde_json::to_string(&tool).expect("strings and JSON values are JSON"));
        text.push('\n');
    }
    text.push_str(
        "</tools>\n\nTo call a function, answer with a JSON object that has its name and its arguments, within \
         <tool_call></tool_call>:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <arguments-object>}\n\
         </tool_call>\nThen stop: the result comes with the next message. Without a call, your answer is final.",
    );
    text
}

/// Returns the `response_format` that makes the server accept only arguments of `tool` as the answer.
pub(crate) fn arguments_format(tool: &ToolDef) -> Box<RawValue> {
    let format =
        json!({"type": "json_schema", "json_schema": {"name": tool.name, "schema": tool.parameters}});
    to_raw_value(&format).expect("a JSON value is JSON")
}

/// Turns the answer to a request with [`arguments_format`] into the call that it stands for. An answer that was cut by
/// the token limit has no call.
pub(crate) fn into_forced_call(name: &str, turn: Turn) -> Turn {
    let whole = turn.finish_reason != FinishReason::Length;
    let call = ToolCall { id: CallId::local(), name: name.to_owned(), arguments: turn.content };
    Turn { content: String::new(), calls: whole.then_some(call).into_iter().collect(), ..turn }
}

#[cfg(test)]
mod tests;
