//! The tools that run in the daemon, the `skill` tool among them.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};

use kontekst_core::{Cancel, ToolDef, ToolFailureKind, ToolNature, ToolOutcome};
use kontekst_store::skills::Skills;
use kontekst_tools::{CommandRunner, Proposal, Tool, WorkDir, builtin};

use crate::{run::SKILL_TOOL, state::Shared};

/// Returns every tool that runs in the daemon, except the one that starts subagents. `commands` runs command lines.
pub(crate) fn daemon_tools(
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
        let mut properties = json!({"name": {"type": "string"}, "arguments": {"type": "string"}});
        // Also if only skills have files that this run may not use, so that all runs in a directory have the same definition.
        if self.skills.iter().any(|skill| !skill.files.is_empty()) {
            properties["file"] =
                json!({"type": "string", "description": "Returns this file of the skill and not its text"});
        }
        ToolDef {
            nature: ToolNature::Tells,
            name: SKILL_TOOL.to_owned(),
            description,
            parameters: json!({"type": "object", "properties": properties, "required": ["name"]}),
            ..ToolDef::default()
        }
    }

    fn needs_approval(&self) -> bool {
        false
    }

    fn execute(&self, args: &Value, _: &WorkDir, _: &Proposal, _: &Cancel) -> ToolOutcome {
        self.read(args).unwrap_or_else(|(kind, message)| ToolOutcome::failed(kind, message))
    }
}

impl SkillTool {
    fn read(&self, args: &Value) -> Result<ToolOutcome, (ToolFailureKind, String)> {
        let invalid = |message| (ToolFailureKind::InvalidArguments, message);
        let denied = |message| (ToolFailureKind::Denied, message);
        let name = args["name"].as_str().ok_or_else(|| invalid("missing name".to_owned()))?;
        let name = name.trim().trim_start_matches('/');
        let skill = self.skills.find(name).ok_or_else(|| invalid(format!("skill not found: {name}")))?;
        if !self.skills.is_chosen(skill) {
            return Err(denied(format!(
                "the skill {name} is the project's, and the user has not approved it as it is; only the user can invoke it, with \
                 /{name}"
            )));
        }
        match args["file"].as_str().filter(|file| !file.is_empty()) {
            Some(file) => {
                skill.read_file(file.trim_start_matches("./")).map_err(invalid).map(ToolOutcome::done)
            }
            None if skill.disable_model_invocation => {
                Err(denied(format!("only the user can invoke this skill, with /{name}")))
            }
            None => Ok(ToolOutcome::done(skill.prompt_block(args["arguments"].as_str().unwrap_or_default()))),
        }
    }
}
