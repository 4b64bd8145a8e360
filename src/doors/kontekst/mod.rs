//! The kontekst gRPC door: `kontekst.AgentService`, `kontekst.ApprovalService`, `kontekst.UndoService` and `kontekst.DaemonService`.

mod agent_service;
mod approval_service;
mod caller;
mod convert;
mod daemon_service;
mod facts;
mod own_decisions;
mod stream;
mod undo_service;
mod watch;

pub use agent_service::AgentDoor;
pub use approval_service::ApprovalDoor;
pub use daemon_service::{DaemonDoor, IdleExit, ListenerStatus, StatusContext};
pub use undo_service::UndoDoor;
