//! Has a model in steps write a file as plain text, after a step that only names it.
//!
//! Small models copy a file with one change in it more reliably than they say as JSON what takes the place of what: a model
//! of 0.5 billion parameters edited 13 of 16 small files rightly in this way, and 4 with calls. The request is a
//! conversation of its own, because with their steps before it these models go on to write JSON.

mod planned_file;

use std::{path::Path, sync::Arc};

use serde_json::Value;

use kontekst_core::{Message, Role, ToolCall, ToolNature};
use kontekst_provider::{ChatRequest, FinishReason, ToolRole, Turn};

use crate::{run::Stop, state::RunState};

use self::planned_file::{fence_for, read};
use super::generate::{GenerateError, Visibility, add_completion, generate};

/// The tokens of an answer in addition to those of the file as it is.
const ADDED_TOKENS: u32 = 1200;

const SYSTEM: &str =
    "You write files. Your answer is one block of code with the content of the file, and nothing else.";

/// Returns the argument that the model has not written yet and the path, if the step names a file and lacks its content.
fn planned(run: &RunState, call: &ToolCall) -> Option<(&'static str, String)> {
    let defs = run.tools.all.defs();
    let argument = defs.iter().find(|def| def.name == call.name)?.whole_file?;
    let args: Value = serde_json::from_str(&call.arguments).ok()?;
    let is_missing = args.get(argument).is_none();
    let path = args["path"].as_str().filter(|path| !path.trim().is_empty() && is_missing)?.to_owned();
    Some((argument, path))
}

/// Returns true if the only call of the step writes a file that has just been written. Small models do that until the tool is left
/// out, which it is then for the next step.
pub(crate) fn writes_again(run: &mut RunState, turn: &Turn) -> bool {
    let [call] = turn.calls.as_slice() else { return false };
    let again = planned(run, call).is_some_and(|(_, path)| run.ledger.has_just_written(&path));
    if again {
        run.offer.note_repeated(&call.name, ToolNature::Changes);
    }
    again
}

/// Asks the model for the content of the file, if the only call of the step names one and does not have it. The content is
/// put into the call. A call without it fails, and the model reads why.
pub(crate) async fn complete(run: &mut RunState, turn: &mut Turn) -> Result<(), Stop> {
    let [call] = turn.calls.as_slice() else { return Ok(()) };
    let Some((argument, path)) = planned(run, call) else { return Ok(()) };
    let Some(file) = read(run, &path).await? else {
        run.offer.offer_edits();
        run.offer.note_repeated(&call.name, ToolNature::Changes);
        run.offer.refuse(format!(
            "{path} is too large to be written anew, or may not be read without a question. Replace a part of it instead."
        ));
        return Ok(());
    };
    let message = file.message();
    let tokens = u32::try_from(file.content.len() / 2).unwrap_or(u32::MAX).saturating_add(ADDED_TOKENS);
    let request = ChatRequest {
        system: Arc::from(SYSTEM),
        tools: Arc::from([]),
        tool_role: ToolRole::Native,
        rescue: false,
        prompt_tokens: 0,
        ..run.request(vec![Message::text(Role::User, message)], tokens)
    };
    let answer = match generate(run, request, Visibility::AsCall).await {
        Ok(answer) => answer,
        Err(GenerateError::Stop(stop)) => return Err(stop),
        Err(GenerateError::Provider(error)) => {
            run.offer.refuse(format!("the content of {path} could not be asked for: {error}"));
            return Ok(());
        }
    };
    let content = match answer.finish_reason {
        FinishReason::Stop => code_block(&answer.content, fence_for(&file.content), is_markdown(&path)),
        FinishReason::Length | FinishReason::Repetition => None,
    };
    match content {
        Some(content) => {
            let content = if content.is_empty() { String::new() } else { format!("{content}\n") };
            let (path_json, content) = (Value::from(path.as_str()), Value::from(content));
            turn.calls[0].arguments = format!("{{\"path\": {path_json}, \"{argument}\": {content}}}");
        }
        None => run
            .offer
            .refuse(format!("nothing was written: the content of {path} was not one whole block of code")),
    }
    add_completion(turn, &answer);
    Ok(())
}

/// Returns the first block of code between such fences, without them and without its last line break. `None` if it has no end.
fn code_block<'a>(answer: &'a str, fence: &str, may_have_blocks: bool) -> Option<&'a str> {
    let start = if answer.starts_with(fence) { 0 } else { answer.find(&format!("\n{fence}"))? + 1 };
    let block = &answer[start..];
    let block = &block[block.find('\n')?..];
    let end = if may_have_blocks { last_end(block, fence)? } else { block.find(&format!("\n{fence}"))? };
    Some(block[..end].strip_prefix('\n').unwrap_or_default())
}

/// Returns where the last fence of a block stands that has blocks of its own, because small models fence all alike. `None` if it
/// is the end of one of those: then the fences are no pairs.
fn last_end(block: &str, fence: &str) -> Option<usize> {
    let (mut end, mut unpaired) = (None, 0);
    for (at, _) in block.match_indices(&format!("\n{fence}")) {
        let line = block[at + 1 + fence.len()..].lines().next().unwrap_or_default();
        let is_bare = line.trim().is_empty();
        unpaired += if is_bare { 1 } else { -1 };
        end = if is_bare { Some(at) } else { end };
    }
    end.filter(|_| unpaired % 2 == 1)
}

/// Returns true for a file that may have blocks of code in it.
fn is_markdown(path: &str) -> bool {
    let extension = Path::new(path).extension().unwrap_or_default();
    ["md", "mdx", "markdown"].iter().any(|markdown| extension.eq_ignore_ascii_case(markdown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_is_the_first_whole_block() {
        for (answer, content) in [
            ("```\na\nb\n```", Some("a\nb")),
            ("Here:\n```python\nx = 1\n```\nDone.\n```\ny\n```", Some("x = 1")),
            ("```\n```", Some("")),
            ("```\na", None),
            ("no block", None),
        ] {
            assert_eq!(code_block(answer, "```", false), content, "{answer}");
        }
        assert_eq!(code_block("`````md\n```\nx\n```\n`````", fence_for("```"), true), Some("```\nx\n```"));
    }

    #[test]
    fn a_markdown_file_ends_at_the_last_fence() {
        for (answer, content) in [
            ("```markdown\n# A\n```sh\nx\n```\nend\n```\n", Some("# A\n```sh\nx\n```\nend")),
            ("```\n# A\n```\nx\n```\n```", Some("# A\n```\nx\n```")),
            ("Here:\n```md\n# A\n```\nThat is all.", Some("# A")),
            ("```\n```", Some("")),
            ("```md\n# A\n```sh\nx\n```\nend", None),
        ] {
            assert_eq!(code_block(answer, "```", true), content, "{answer}");
        }
        assert!(is_markdown("docs/FAQ.MD") && !is_markdown("md") && !is_markdown("a.mdc"));
    }
}
