//! Plain data that every layer shares. No I/O, no runtime.

mod bearer;
mod cancel;
pub mod clock;
pub mod doors;
mod environment;
mod id;
mod lenient;
mod message;
mod sampling;
mod snapshot;
mod tool;
mod watchdog;

pub use bearer::is_bearer;
pub use cancel::{Cancel, OnCancel};
pub use environment::Environment;
pub use id::{BadName, CallId, Name, RunId, SessionId};
pub use lenient::lenient;
pub use message::{Message, Role, ToolResult};
pub use sampling::Sampling;
pub use snapshot::{ContextSnapshot, MessageStats, Source};
pub use tool::{ToolCall, ToolDef, ToolFailureKind, ToolOutcome};
pub use watchdog::StallWatchdog;
