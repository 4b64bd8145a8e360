//! The kontekst gRPC door: `kontekst.AgentService` and `kontekst.DaemonService`.

mod convert;
mod daemon_service;
mod service;
mod stream;
mod watch;

pub use convert::worker as worker_event;
pub use daemon_service::{DaemonDoor, Vitals};
pub use service::AgentDoor;

/// The largest message either side takes: prompts of 16 MiB and tool outputs pass with room to spare.
pub const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;
