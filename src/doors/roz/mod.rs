//! The Roz gRPC door: `roz.v1.AgentService`, sessions of many turns whose tools run at the client.
//!
//! One stream is one session. `session.rs` is its task, `state.rs` the table of what may be said when,
//! `turn.rs` what a client hears of a run, `news.rs` that in the client's words and `convert.rs` on the wire,
//! in both generations' forms at once. `outbox.rs` bounds what a client that does not read may cost. `watch.rs` tells of the workers of a session.

mod approvals;
mod client_run;
mod convert;
mod history;
mod outbox;
mod server_event;
mod service;
mod session;
mod start;
mod state;
mod structs;
mod tools;
mod watch;

pub use service::RozDoor;

/// The largest message either side takes. Source: what the second generation's server allows.
pub const MESSAGE_LIMIT: usize = 12 * 1024 * 1024;
