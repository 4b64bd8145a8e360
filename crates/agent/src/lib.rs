//! The agent: the one core that every door uses.

// Tests may be longer.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod agent_core;
mod answer_format;
mod beginning;
mod bridge;
mod busy_server;
mod calls;
mod checks;
mod context;
mod conversation;
mod generate;
mod grant;
mod history;
mod ledger;
mod limits;
mod messages;
mod model;
mod model_profile;
mod next_turn;
mod offer;
mod parking;
mod pending_calls;
mod prepare;
mod prompt;
pub mod protocol;
mod queries;
mod rails;
mod recorder;
mod request;
mod route;
mod run;
mod run_checks;
mod run_loop;
mod run_registry;
mod run_state;
mod server_status;
mod session;
mod shared;
mod subagent;
mod toolset;
mod undo;
mod whole_file;

pub use agent_core::AgentCore;
pub use conversation::Conversation;
pub use pending_calls::PendingApproval;
pub use queries::DaemonTool;
pub use request::{
    ApprovalBatching, DaemonTools, Expects, ExtraContext, History, Prompt, ResumeRun, RunOverrides,
    SKILL_TOOL, SPAWN_WORKER, StartRun, SubagentOptions, ToolOptions,
};
pub use run::Run;
pub use subagent::SubagentWatch;
pub use undo::{ChangedRun, PlannedUndo, UndoError, UndoTarget};
