//! The `skill` tool: the model asks for a prompt template by name.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    core::{Cancel, ToolDef, ToolFailureKind, ToolOutcome},
    skills::Skills,
    tools::{Proposal, Tool, WorkDir},
};

/// Gives the model a skill's text as the tool's result.
pub(super) struct SkillTool {
    skills: Skills,
}

impl SkillTool {
    pub(super) fn new(skills: Skills) -> Self {
        Self { skills }
    }
}

impl Tool for SkillTool {
    fn def(&self) -> ToolDef {
        let mut description = "Load instructions for a task. Available skills:".to_owned();
        for skill in self.skills.for_model() {
            write!(description, "\n- {}: {}", skill.name, skill.description).expect("writes to a string");
        }
        ToolDef {
            name: "skill".to_owned(),
            description,
            parameters: json!({
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
                "required": ["name"],
            }),
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
                ToolOutcome::Done(skill.prompt_block(args["arguments"].as_str().unwrap_or_default()))
            }
        }
    }
}
