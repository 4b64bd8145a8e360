//! Tools as the model sees them: their definitions, calls and outcomes.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::CallId;

/// A tool definition, as it is offered to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef {
    pub name: String,
    pub description: String,
    /// A JSON Schema of type `object`.
    pub parameters: Value,
    /// The tool fails instead of replacing a file if an argument `create_only` is true. The argument is not among the
    /// `parameters`, because only the starter model needs it. This is never sent to a model server.
    pub create_only: bool,
}

/// One tool call, as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// The model's own JSON text, unchanged to the byte. Serialising the arguments again could change
    /// the prompt of the next turn, and the model server would lose its prompt cache.
    #[serde(deserialize_with = "text_or_object")]
    pub arguments: String,
}

impl ToolCall {
    /// Parses the arguments into a JSON object.
    ///
    /// Empty text counts as `{}`, because some models send nothing for a tool without parameters.
    ///
    /// # Errors
    ///
    /// A sentence for the model if the text is not a JSON object.
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

/// Accepts the arguments as JSON text, or as the object itself, which other programs write.
fn text_or_object<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

/// The outcome of a call. A failure does not end the run: the model reads its message in the next turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    Done(String),
    Failed {
        kind: ToolFailureKind,
        /// A sentence for the model.
        message: String,
    },
}

/// The reason for a failure, for code that reacts to it. The model reads only the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolFailureKind {
    /// There is no such tool, or its arguments are invalid.
    InvalidArguments,
    /// The file that the call names does not exist.
    NotFound,
    /// The file that the call names is not in the working directory.
    OutsideWorkspace,
    /// The file changed after its preview was made, so nothing was written.
    Stale,
    /// The tool was stopped because it ran longer than the time limit of a call.
    TimedOut,
    /// The run was cancelled before the call ended.
    Cancelled,
    /// The call was not approved.
    Denied,
    /// Anything else, including every failure of a tool that runs at the client.
    Other,
}

impl ToolOutcome {
    pub fn failed(kind: ToolFailureKind, message: impl Into<String>) -> Self {
        Self::Failed { kind, message: message.into() }
    }

    /// Returns the text that the model reads: the result, or the message of the failure.
    pub fn text(&self) -> &str {
        match self {
            Self::Done(text) | Self::Failed { message: text, .. } => text,
        }
    }

    /// Returns the reason for the failure, or `None` if the call succeeded.
    pub fn failure_kind(&self) -> Option<ToolFailureKind> {
        match self {
            Self::Done(_) => None,
            Self::Failed { kind, .. } => Some(*kind),
        }
    }

    pub fn is_error(&self) -> bool {
        self.failure_kind().is_some()
    }
}
