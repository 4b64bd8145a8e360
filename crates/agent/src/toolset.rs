//! The tools of a run: those of the daemon, the `skill` tool among them, and those of the client.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use serde_json::{Value, json};

use kontekst_core::{Cancel, ToolDef, ToolFailureKind, ToolNature, ToolOutcome};
use kontekst_store::skills::Skills;
use kontekst_tools::{CommandRunner, Proposal, Tool, ToolBox, WorkDir, builtin, policy::Policy};

use super::{
    protocol::{FailureKind, RunError},
    request::{ApprovalBatching, SKILL_TOOL, ToolOptions},
    shared::Shared,
};

/// The tools of a run.
pub(super) struct RunTools {
    /// All tools, with the client's after the daemon's.
    pub(super) all: ToolBox,
    pub(super) work_dir: Arc<WorkDir>,
    pub(super) approvals: ApprovalBatching,
    /// The time limit for a call that runs in the daemon.
    pub(super) timeout: Duration,
    /// See [`ToolOptions::reading_is_free`].
    pub(super) reading_is_free: bool,
    /// See [`ToolOptions::client_decides`].
    pub(super) client_decides: bool,
    /// The rules of the user about calls.
    pub(super) policy: Arc<Policy>,
}

impl RunTools {
    pub(super) fn new(
        daemon: ToolBox,
        options: ToolOptions,
        work_dir: Arc<WorkDir>,
        policy: Arc<Policy>,
        timeout: Duration,
    ) -> Result<Self, RunError> {
        let ToolOptions { client, approvals, reading_is_free, client_decides, .. } = options;
        let all = daemon
            .with_client_tools(client)
            .map_err(|error| RunError::from_source(FailureKind::Request, &error))?;
        Ok(Self { all, work_dir, approvals, timeout, reading_is_free, client_decides, policy })
    }

    /// Returns true if the run has tools of the daemon that read files.
    pub(super) fn can_read_files(&self) -> bool {
        self.all.defs().iter().any(|tool| tool.nature == ToolNature::Reads)
    }
}

/// Returns every tool that runs in the daemon, except the one that starts subagents. `commands` runs command lines.
pub(super) fn daemon_tools(
    shared: &Shared,
    commands: Option<&Arc<CommandRunner>>,
    skills: Skills,
) -> Vec<Arc<dyn Tool>> {
    let launcher = shared.commands.as_ref().map(|runner| runner.launcher());
    let mut tools = builtin::all(&shared.config.tools, &shared.own_listeners, launcher);
    let runner = commands.filter(|runner| runner.is_offered());
    tools.extend(runner.map(builtin::run_command));
    if skills.for_model().next().is_some() {
        tools.push(Arc::new(SkillTool { skills }) as Arc<dyn Tool>);
    }
    tools
}

/// The `skill` tool, which returns the text of a skill to the model.
struct SkillTool {
    skills: Skills,
}

impl Tool for SkillTool {
    fn def(&self) -> ToolDef {
        let mut description = "Load instructions for a task. Available skills:".to_owned();
        for skill in self.skills.for_model() {
            write!(description, "\n- {}: {}", skill.name, skill.description).expect("writes to a string");
        }
        ToolDef {
            nature: ToolNature::Tells,
            name: SKILL_TOOL.to_owned(),
            description,
            parameters: json!({
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
                "required": ["name"],
            }),
            ..ToolDef::default()
        }
    }

    fn needs_approval(&self) -> bool {
        false
    }

    fn execute(&self, args: &Value, _: &WorkDir, _: &Proposal, _: &Cancel) -> ToolOutcome {
        let Some(name) = args["name"].as_str() else {
            return ToolOutcome::failed(ToolFailureKind::InvalidArguments, "missing name");
        };
        let name = name.trim().trim_start_matches('/');
        match self.skills.find(name) {
            None => {
                ToolOutcome::failed(ToolFailureKind::InvalidArguments, format!("skill not found: {name}"))
            }
            Some(skill) if skill.disable_model_invocation => {
                let message = format!("only the user can invoke this skill, with /{name}");
                ToolOutcome::failed(ToolFailureKind::Denied, message)
            }
            Some(skill) => {
                ToolOutcome::done(skill.prompt_block(args["arguments"].as_str().unwrap_or_default()))
            }
        }
    }
}
