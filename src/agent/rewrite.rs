//! Asks the model for a whole file in place of its next step, and makes an edit of the answer.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    core::{Message, Role},
    provider::{ChatRequest, FinishReason, ToolRole, Turn},
    tools::builtin::readable_text,
};

use super::{
    bridge::blocking,
    generate::{GenerateError, Visibility, add_completion, generate, next_answer},
    rails::{EDIT_FILE, MAX_REWRITTEN_FILE, VERY_SMALL_MODEL, WRITE_FILE},
    run::Stop,
    run_state::RunState,
};

/// Returns the next answer of the model: the edit of a file that it has written anew if one is planned, else its next step.
/// The flag says if the answer is one to what the window holds.
pub(super) async fn next_turn(run: &mut RunState) -> Result<(Turn, bool), Stop> {
    if let Some(turn) = rewritten_file(run).await? {
        return Ok((turn, false));
    }
    let step = next_answer(run).await?;
    plan_first_edit(run, &step).await?;
    match rewritten_file(run).await? {
        Some(mut turn) => {
            add_completion(&mut turn, &step);
            Ok((turn, false))
        }
        None => Ok((step, true)),
    }
}

/// Plans that a model that works in steps writes the file of the edit `args` anew. Nothing is planned for a file that is too
/// large, that it may not read without a question, or that the run has changed already: a part of the request would be
/// done a second time.
pub(super) async fn plan(run: &mut RunState, args: &Value) -> Result<(), Stop> {
    let in_steps = run.model.provider.works_in_steps(run.model.agent.tool_role);
    let is_possible = run.rails.config.errors && run.tools.reading_is_free && in_steps;
    let is_wanted = |path: &&str| is_possible && !run.rails.file_changes.is_changed_well(path);
    let Some(path) = args["path"].as_str().filter(is_wanted).map(str::to_owned) else { return Ok(()) };
    let work_dir = Arc::clone(&run.tools.work_dir);
    let reading = move || (readable_text(&work_dir, &path, MAX_REWRITTEN_FILE), path);
    if let (Some(content), path) = blocking(reading).join().await? {
        run.rails.rewrites.plan(&path, &content);
    }
    Ok(())
}

/// Plans that a very small model writes a file anew in place of its first change of it.
async fn plan_first_edit(run: &mut RunState, step: &Turn) -> Result<(), Stop> {
    let [call] = step.calls.as_slice() else { return Ok(()) };
    let is_very_small = || run.model.provider.parameters().is_some_and(|count| count < VERY_SMALL_MODEL);
    if ![EDIT_FILE, WRITE_FILE].contains(&&*call.name) || !is_very_small() {
        return Ok(());
    }
    let args: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    if args["path"].as_str().is_none_or(|path| run.rails.rewrites.has(path)) {
        return Ok(());
    }
    plan(run, &args).await
}

/// Asks the model for the file that is planned. Returns the edit as if the model had called it, or `None` if there is no such
/// file or the answer is of no use. An error of the provider does not end the run here, because the next step meets it, too.
async fn rewritten_file(run: &mut RunState) -> Result<Option<Turn>, Stop> {
    let Some(rewrite) = run.rails.rewrites.take() else { return Ok(None) };
    let message = Message::text(Role::User, rewrite.message());
    let request = ChatRequest {
        system: Arc::from(""),
        tools: Arc::from([]),
        tool_role: ToolRole::Native,
        rescue: false,
        prompt_tokens: 0,
        ..run.request(vec![message], rewrite.max_tokens())
    };
    let answer = match generate(run, request, Visibility::AsCall).await {
        Ok(answer) => answer,
        Err(GenerateError::Stop(stop)) => return Err(stop),
        Err(GenerateError::Provider(error)) => {
            tracing::info!(%error, "a file could not be written anew");
            return Ok(None);
        }
    };
    let call = match answer.finish_reason {
        FinishReason::Stop => rewrite.call(&answer.content),
        FinishReason::Length | FinishReason::Repetition => None,
    };
    Ok(call.map(|call| Turn { content: String::new(), calls: vec![call], ..answer }))
}
