//! The chat completions format as serde types. Answers are parsed in place, without copying tokens.
//!
//! Source: OpenAI's format as llama-server, vLLM and Ollama implement it. All fields of an answer are optional, and
//! one that is missing, `null` or of an unexpected type counts as absent instead of failing the answer.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::provider::chat::{messages::WireMessage, openai_types::Tool};

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
    pub max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_penalty: Option<f64>,
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

/// One event of an answer, or a whole answer from a server that does not stream.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub usage: Option<Usage>,
    /// llama.cpp sends these in the last chunk, with or without `usage`.
    #[serde(default)]
    pub timings: Option<Timings>,
    #[serde(default)]
    pub prompt_progress: Option<PromptProgress>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub index: Count,
    #[serde(borrow, default, alias = "message")]
    pub delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub reasoning_content: Option<Text<'a>>,
    /// The same as `reasoning_content`, as Ollama and newer versions of vLLM name it.
    #[serde(borrow, default)]
    pub reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub index: Count,
    #[serde(borrow, default)]
    pub id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
}

impl FunctionDelta<'_> {
    /// Returns the next part of the arguments: the content of a string, or the JSON text of an object.
    pub(super) fn argument_text(&self) -> Result<Cow<'_, str>, serde_json::Error> {
        let Some(raw) = self.arguments.map(RawValue::get) else { return Ok(Cow::Borrowed("")) };
        if raw.starts_with('"') {
            return Ok(serde_json::from_str::<Text<'_>>(raw)?.0);
        }
        Ok(Cow::Borrowed(raw))
    }
}

/// Text that borrows from the input unless it has escapes. It is a type of its own because serde borrows a `Cow` that
/// is a field, but not one inside an `Option`.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

#[derive(Clone, Copy, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Usage {
    pub prompt_tokens: Count,
    pub completion_tokens: Count,
    pub prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Clone, Copy, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub cached_tokens: Count,
}

#[derive(Clone, Copy, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Timings {
    pub cache_n: Count,
    pub prompt_n: Count,
    pub predicted_n: Count,
}

#[derive(Clone, Copy, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct PromptProgress {
    pub total: Count,
    pub cache: Count,
    pub processed: Count,
}

/// A number of tokens or an index. Anything that cannot be one, such as `-1`, becomes `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub Option<u32>);

impl Count {
    pub(super) fn or_zero(self) -> u32 {
        self.0.unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = <&RawValue>::deserialize(from)?.get();
        Ok(Self(number.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_copied() {
        let line = br#"{"choices":[{"index":0,"delta":{"content":"plain"}}]}"#;
        let chunk: Chunk<'_> = serde_json::from_slice(line).unwrap();
        let content = chunk.choices.unwrap().remove(0).delta.unwrap().content.unwrap();
        assert!(matches!(content.0, Cow::Borrowed("plain")));
    }

    #[test]
    fn odd_numbers_are_absent() {
        for (text, count) in [("7", Some(7)), ("-1", None), ("1e99", None), ("null", None), ("\"x\"", None)] {
            assert_eq!(serde_json::from_str::<Count>(text).unwrap(), Count(count), "{text}");
        }
    }
}
