//! A request of the chat completions format as serde types. Answers are read as [`Json`](super::json::Json).
//!
//! Source: OpenAI's format as llama-server, vLLM and Ollama implement it.

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    core::Sampling,
    provider::chat::{messages::WireMessage, openai_types::Tool},
};

/// A request. The order of the fields is their order on the wire, which is the same in every request.
#[derive(Serialize)]
pub(super) struct Request<'a> {
    pub model: &'a str,
    pub messages: &'a [WireMessage<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tools: &'a [Tool<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub logit_bias: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<&'a str>,
    /// llama.cpp only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_template_kwargs: Option<Value>,
    #[serde(flatten)]
    pub sampling: Sampling,
    pub stream: bool,
    pub stream_options: StreamOptions,
    /// llama.cpp only: makes the server report prefill progress, and notice a closed connection during prefill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_progress: Option<bool>,
    /// llama.cpp only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_prompt: Option<bool>,
}

/// The form of an answer.
#[derive(Serialize)]
pub(super) struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<SchemaFormat<'a>>,
}

#[derive(Serialize)]
pub(super) struct SchemaFormat<'a> {
    pub name: &'a str,
    /// The text of the client, because models write the members in the order of the schema.
    pub schema: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

#[derive(Serialize)]
pub(super) struct StreamOptions {
    pub include_usage: bool,
}
