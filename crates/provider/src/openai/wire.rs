//! A request of the chat completions format as serde types. Answers are read as [`Json`](super::json::Json).
//!
//! Source: OpenAI's format as llama-server, vLLM and Ollama implement it.

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use kontekst_core::Sampling;

use crate::chat::{messages::WireMessage, openai_types::Tool};

/// A request. The order of the fields is their order on the wire, which is the same in every request.
#[derive(Serialize)]
pub(super) struct Request<'a> {
    pub(crate) model: &'a str,
    pub(crate) messages: &'a [WireMessage<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) tools: &'a [Tool<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_format: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) logit_bias: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_effort: Option<&'a str>,
    /// llama.cpp only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chat_template_kwargs: Option<Value>,
    #[serde(flatten)]
    pub(crate) sampling: Sampling,
    pub(crate) stream: bool,
    pub(crate) stream_options: StreamOptions,
    /// llama.cpp only: makes the server report prefill progress, and notice a closed connection during prefill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) return_progress: Option<bool>,
    /// llama.cpp only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_prompt: Option<bool>,
}

/// The form of an answer.
#[derive(Serialize)]
pub(super) struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) json_schema: Option<SchemaFormat<'a>>,
}

#[derive(Serialize)]
pub(super) struct SchemaFormat<'a> {
    pub(crate) name: &'a str,
    /// The text of the client, because models write the members in the order of the schema.
    pub(crate) schema: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strict: Option<bool>,
}

#[derive(Serialize)]
pub(super) struct StreamOptions {
    pub(crate) include_usage: bool,
}
