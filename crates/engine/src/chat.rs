//! Messages and tools in OpenAI's form, as chat templates read them and as requests to model servers carry them.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

/// One message of a conversation.
#[derive(Debug, Serialize, PartialEq)]
pub struct Message<'a> {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: &'static str,
    pub content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Cow<'a, str>>,
}

/// A tool call.
#[derive(Debug, Serialize, PartialEq)]
pub struct Call<'a> {
    pub id: Cow<'a, str>,
    pub r#type: &'static str,
    pub function: CallFunction<'a>,
}

/// The name of a called tool and its arguments.
#[derive(Debug, Serialize, PartialEq)]
pub struct CallFunction<'a> {
    pub name: &'a str,
    /// JSON, as the model wrote it.
    pub arguments: Cow<'a, str>,
}

/// A tool that may be called.
#[derive(Serialize)]
pub struct Tool<'a> {
    pub r#type: &'static str,
    pub function: ToolFunction<'a>,
}

/// The definition of a tool.
#[derive(Serialize)]
pub struct ToolFunction<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub parameters: &'a Value,
}
