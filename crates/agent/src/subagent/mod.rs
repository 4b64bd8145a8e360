//! Subagents: runs that another run starts. The model calls them workers.

mod follow;
mod group;
mod report;
mod spawn_tool;
mod watch;

pub use watch::SubagentWatch;

pub(super) use group::run_subagents;
pub(super) use spawn_tool::SpawnTool;
