//! The kontekst gRPC door: `kontekst.AgentService` and `kontekst.DaemonService`.

mod agent_service;
mod approval_service;
mod convert;
mod daemon_service;
mod stream;
mod watch;

pub use agent_service::AgentDoor;
pub use approval_service::ApprovalDoor;
pub use convert::worker_event;
pub use daemon_service::{DaemonDoor, StatusContext};

/// The largest message either side takes: prompts of 16 MiB and tool outputs pass with room to spare.
pub const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;
