//! Tools for templates that know none: told in the system text, called and answered in plain text.
//!
//! Source of the form: the prompts that Hermes and Qwen models were trained on. Other models follow it too.

mod call;
mod tool_call_parser;

pub use call::ParsedCall;
pub use tool_call_parser::ToolCallParser;

use serde_json::{Value, json};

use crate::{
    core::{CallId, ToolCall, ToolDef},
    provider::{FinishReason, Turn},
};

use super::{messages, openai_types};

/// The system text with the tools behind it. The same bytes for the same tools.
pub fn system_with_tools(system: &str, tools: &[ToolDef]) -> String {
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

/// A call as the model was told to write it; the arguments stay to the byte. Models that keep to the
/// form find their own bytes again, others see how it should have been.
pub fn call_as_text(call: &openai_types::CallFunction<'_>) -> String {
    let name = serde_json::to_string(call.name).expect("a string is JSON");
    format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {}}}\n</tool_call>", call.arguments)
}

/// The same up to where the arguments begin.
#[cfg(feature = "builtin")]
pub fn call_prefix(name: &str) -> String {
    let name = serde_json::to_string(name).expect("a string is JSON");
    format!("<tool_call>\n{{\"name\": {name}, \"arguments\": ")
}

/// Has the server take nothing for an answer but arguments of this tool.
pub fn arguments_format(tool: &ToolDef) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": tool.name, "schema": tool.parameters}})
}

/// The answer to a request with [`format()`], as the call it stands for.
pub fn into_forced_call(name: &str, turn: Turn) -> Turn {
    let whole = turn.finish_reason != FinishReason::Length;
    let call = ToolCall { id: CallId::local(), name: name.to_owned(), arguments: turn.content };
    Turn { content: String::new(), calls: whole.then_some(call).into_iter().collect(), ..turn }
}

#[cfg(test)]
mod tests;
