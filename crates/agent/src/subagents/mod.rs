//! Subagents: runs that another run starts. The model calls them workers.

mod follow;
mod group;
mod report;
mod spawn_tool;
mod watch;

pub use watch::SubagentWatch;

pub(crate) use group::run_subagents;
pub(crate) use spawn_tool::SpawnTool;
