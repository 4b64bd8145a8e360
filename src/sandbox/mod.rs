//! Runs command lines: starts them, reads their output, limits them, and ends them with everything that they started.
//!
//! Three processes take part. The daemon starts its own executable as the *keeper* of one command ([`keeper`]), which
//! starts it once more as the *inner* process ([`inner`]). The inner process gives up what the command may not have
//! and becomes `sh`. The keeper stays outside: it ends everything when the command is over, or when its socket to the
//! daemon closes, as it does when the daemon dies.

mod command;
mod end;
mod inner;
mod job;
mod keeper;
mod layers;
mod processes;
mod runner;

pub use command::{CommandSpec, Limits};
pub use end::{CommandEnd, Ending, SandboxError};
pub use inner::{ROLE as INNER_ROLE, run as run_inner};
pub use keeper::{ROLE as KEEPER_ROLE, run as run_keeper};
pub use layers::Layers;
pub use runner::Sandbox;
