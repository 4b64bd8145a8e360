//! Tools as the model sees them: definitions, calls and outcomes.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::CallId;

/// A tool as it is offered to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef {
    pub name: String,
    pub description: String,
    /// A JSON Schema of type `object`.
    pub parameters: Value,
}

/// One call, as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// The model's own JSON text. Kept to the byte: re-serialised arguments would change the prompt
    /// of the next turn and cost its cache.
    #[serde(deserialize_with = "text_or_object")]
    pub arguments: String,
}

impl ToolCall {
    /// The arguments as a JSON object.
    ///
    /// Empty text counts as `{}`, which is what models send for a tool without parameters.
    ///
    /// # Errors
    ///
    /// One sentence for the model when the text is not a JSON object.
    pub fn parse_arguments(&self) -> Result<Value, String> {
        if self.arguments.trim().is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        match serde_json::from_str(&self.arguments) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err("the arguments must be a JSON object".to_owned()),
            Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
        }
    }
}

fn text_or_object<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

/// How a call ended. A failure is something the model reads next, not an error of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    Done(String),
    Failed(String),
}

impl ToolOutcome {
    pub fn text(&self) -> &str {
        let (Self::Done(text) | Self::Failed(text)) = self;
        text
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}
