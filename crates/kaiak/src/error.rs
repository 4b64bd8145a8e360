//! The error codes of JSON-RPC and of the Kaiak API.

use serde_json::{Value, json};

/// An error code. Source: JSON-RPC 2.0, and the seed's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Code {
    Parse = -32700,
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    SessionCreationFailed = -32001,
    WorkspaceAccessDenied = -32002,
    SessionNotFound = -32003,
    SessionTerminated = -32004,
    SessionNotReady = -32005,
    AgentInitializationFailed = -32006,
    RequestNotFound = -32007,
    RequestCompleted = -32008,
    InteractionNotFound = -32009,
    InteractionResponded = -32010,
    ResponseValidationFailed = -32011,
    FileModificationFailed = -32012,
    ToolTimeout = -32013,
    Configuration = -32014,
    ResourceExhausted = -32015,
    Internal = -32603,
}

impl Code {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Parse => "Parse error",
            Self::InvalidRequest => "Invalid Request",
            Self::MethodNotFound => "Method not found",
            Self::InvalidParams => "Invalid params",
            Self::SessionCreationFailed => "Session creation failed",
            Self::WorkspaceAccessDenied => "Workspace access denied",
            Self::SessionNotFound => "Session not found",
            Self::SessionTerminated => "Session already terminated",
            Self::SessionNotReady => "Session not ready",
            Self::AgentInitializationFailed => "Agent initialization failed",
            Self::RequestNotFound => "Request not found",
            Self::RequestCompleted => "Request already completed",
            Self::InteractionNotFound => "Interaction not found",
            Self::InteractionResponded => "Interaction already responded",
            Self::ResponseValidationFailed => "Response validation failed",
            Self::FileModificationFailed => "File modification failed",
            Self::ToolTimeout => "Tool execution timeout",
            Self::Configuration => "Configuration error",
            Self::ResourceExhausted => "Resource exhausted",
            Self::Internal => "Internal error",
        }
    }

    /// Returns an error of this code with `data`, a JSON object with details.
    pub(super) fn with(self, data: Value) -> RpcError {
        RpcError { code: self, data: Some(data) }
    }
}

/// The error of one call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcError {
    pub(crate) code: Code,
    /// A JSON object with details.
    pub(crate) data: Option<Value>,
}

impl From<Code> for RpcError {
    fn from(code: Code) -> Self {
        Self { code, data: None }
    }
}

impl RpcError {
    pub(super) fn json(&self) -> Value {
        let mut error = json!({"code": self.code as i32, "message": self.code.message()});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// Returns the error for a field that is missing or wrong.
pub(super) fn bad_field(field: &str, reason: impl Into<String>) -> RpcError {
    Code::InvalidParams.with(json!({"field": field, "reason": reason.into()}))
}
