//! The texts that a run starts with: the system message and the prompt.

use std::{io::Read as _, sync::Arc};

use kontekst_core::{Message, Role, nearest};
use kontekst_store::{config::AgentConfig, skills::Skills};
use kontekst_tools::{FileError, WorkDir, Workspace};

use crate::run::{FailureKind, Prompt, RunError, StartRun};

/// The file with the project's own instructions.
const PROJECT_FILE: &str = "AGENTS.md";
/// The largest project file that is read, in bytes. A larger one would leave no room for a conversation.
const MAX_PROJECT_BYTES: u64 = 32 * 1024;

/// Makes the prompt of a run, whose tokens are not yet counted: expands the skill, if it names one, and puts the blocks of
/// context before it that only this run has.
///
/// # Errors
///
/// [`FailureKind::Request`] if the prompt is empty and has no image, or the skill does not exist.
pub(super) fn prompt_message(request: &StartRun, skills: &Skills) -> Result<Message, RunError> {
    let text = match &request.prompt {
        Prompt::Text(text) => text.clone(),
        Prompt::Skill { name, arguments, text } => expand_skill(name, arguments, text, skills)?,
    };
    if text.trim().is_empty() && request.images.is_empty() {
        return Err(RunError::new(FailureKind::Request, "the prompt is empty"));
    }
    let mut message = Message { images: request.images.clone(), ..Message::text(Role::User, text) };
    if matches!(request.prompt, Prompt::Text(_)) {
        message.data_bytes = request.context.data_bytes.min(message.content.len());
    }
    let context = &request.context.before_prompt;
    let blocks: Vec<&str> =
        context.iter().map(|block| block.trim()).filter(|block| !block.is_empty()).collect();
    if !blocks.is_empty() {
        message.run_context = blocks.join("\n\n");
    }
    Ok(message)
}

fn expand_skill(name: &str, arguments: &str, text: &str, skills: &Skills) -> Result<String, RunError> {
    let invocable = || skills.iter().filter(|skill| skill.user_invocable);
    let Some(skill) = skills.find(name).filter(|skill| skill.user_invocable) else {
        let known: Vec<&str> = invocable().map(|skill| skill.name.as_str()).collect();
        let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean `/{near}`? "));
        let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        return Err(RunError::new(FailureKind::Request, format!("no skill `{name}`; there are: {known}"))
            .hint(format!(
                "{}`kontekst skills` lists them; --no-skill sends the text as it is",
                near.unwrap_or_default()
            )));
    };
    let block = skill.prompt_block(arguments);
    Ok(if text.is_empty() { block } else { format!("{block}\n\n---\n\n{text}") })
}

/// Builds the system message of the agent's prompt, the project's instructions and the `extra` blocks, in
/// this order.
///
/// Runs that find the same files get the same bytes, which the prompt cache of a model server needs. Also returns a
/// notice for the user if the instructions were left out.
pub(super) fn system_message(
    agent: &AgentConfig,
    work_dir: &WorkDir,
    extra: &[String],
) -> (Arc<str>, Option<String>) {
    let mut blocks = vec![agent.prompt.trim().to_owned()];
    let left_out = match read_project_file(work_dir.workspace()) {
        Ok(Some(text)) if text.len() as u64 > MAX_PROJECT_BYTES => {
            Some(format!("it is larger than {} KiB", MAX_PROJECT_BYTES / 1024))
        }
        Ok(text) => {
            if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                blocks.push(format!("<project-instructions>\n{}\n</project-instructions>", text.trim()));
            }
            None
        }
        Err(error) => Some(error.message()),
    };
    blocks.extend(extra.iter().map(|block| block.trim().to_owned()));
    blocks.retain(|block| !block.is_empty());
    let notice = left_out.map(|why| format!("{PROJECT_FILE} was left out: {why}"));
    (blocks.join("\n\n").into(), notice)
}

/// Reads the project file, and at most one byte more than the limit. Returns `None` if there is no such file.
fn read_project_file(workspace: &Workspace) -> Result<Option<String>, FileError> {
    let file = match workspace.open(&workspace.path(PROJECT_FILE)?) {
        Ok(file) => file,
        Err(FileError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_PROJECT_BYTES + 1).read_to_end(&mut bytes).map_err(|source| FileError::Io {
        action: "read",
        path: PROJECT_FILE.to_owned(),
        source,
    })?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
