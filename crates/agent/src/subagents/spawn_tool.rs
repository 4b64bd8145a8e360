//! The `spawn_worker` tool as the model and a person see it. The runs themselves are started by `group.rs`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use kontekst_core::{Cancel, Name, ToolDef, ToolFailureKind, ToolNature, ToolOutcome};
use kontekst_store::config::{AgentConfig, Home};
use kontekst_tools::{Proposal, Tool, WorkDir};

use crate::run::{RequestedLimits, SPAWN_WORKER};

/// The tool that starts subagents.
pub(crate) struct SpawnTool {
    home: Home,
    /// The parent's endpoint, if it has one of its own.
    endpoint: Option<String>,
}

/// The arguments of a call that starts a subagent.
pub(super) struct SubagentRequest {
    pub(super) prompt: String,
    /// Empty means the parent's agent.
    pub(super) agent: String,
    pub(super) limits: RequestedLimits,
}

impl SpawnTool {
    pub(crate) fn new(home: Home, parent: &AgentConfig) -> Self {
        Self { home, endpoint: parent.endpoint.clone() }
    }

    /// Returns a warning if the subagent's model is at another server than the parent's. What the subagent
    /// reads is then sent there.
    fn endpoint_caution(&self, agent: &str) -> Option<String> {
        let name: Name = agent.parse().ok()?;
        let endpoint = AgentConfig::load(&self.home, &name).ok()?.endpoint;
        let server = endpoint.as_deref().unwrap_or("the server that config.toml names");
        (endpoint != self.endpoint)
            .then(|| format!("the agent `{agent}` is at {server}: what this worker reads is sent there"))
    }
}

impl SubagentRequest {
    pub(super) fn from_args(args: &Value) -> Self {
        let text = |key: &str| args[key].as_str().unwrap_or_default().trim().to_owned();
        let number = |key: &str| args[key].as_u64().map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        Self {
            prompt: text("prompt"),
            agent: text("agent"),
            limits: RequestedLimits {
                turns: number("turns"),
                tokens: number("tokens"),
                seconds: number("seconds"),
            },
        }
    }
}

impl Tool for SpawnTool {
    fn def(&self) -> ToolDef {
        ToolDef {
            nature: ToolNature::Starts,
            name: SPAWN_WORKER.to_owned(),
            description:
                "Give a task to a worker, which knows only your prompt, and get its answer. Workers \
                called together work side by side."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "prompt": {"type": "string"},
                    "agent": {"type": "string", "description": "default: yours"},
                    "turns": {"type": "integer"},
                    "tokens": {"type": "integer"},
                    "seconds": {"type": "integer"},
                },
                "required": ["prompt"],
            }),
            ..ToolDef::default()
        }
    }

    fn propose(&self, args: &Value, _: &WorkDir) -> Proposal {
        let SubagentRequest { prompt, agent, limits } = SubagentRequest::from_args(args);
        let mut preview = prompt;
        for (limit, unit) in [(limits.turns, "turns"), (limits.tokens, "tokens"), (limits.seconds, "seconds")]
        {
            if let Some(limit) = limit {
                write!(preview, "\n[at most {limit} {unit}]").expect("writes to a string");
            }
        }
        Proposal { preview, caution: self.endpoint_caution(&agent), ..Proposal::default() }
    }

    fn execute(&self, _: &Value, _: &WorkDir, _: &Proposal, _: &Cancel) -> ToolOutcome {
        ToolOutcome::failed(ToolFailureKind::Other, "workers can only be started by a run")
    }
}
