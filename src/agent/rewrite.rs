//! Asks the model for a whole file in place of its next step, and makes an edit of the answer.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    core::{Message, Role},
    provider::{ChatRequest, FinishReason, ToolRole, Turn, VERY_SMALL_MODEL},
    tools::builtin::{file_exists, readable_text},
};

use super::{
    bridge::blocking,
    generate::{GenerateError, Visibility, add_completion, generate, next_answer},
    rails::{EDIT_FILE, MAX_REWRITTEN_FILE, WRITE_FILE},
    run::Stop,
    run_checks::{self, CheckedAnswer},
    run_state::RunState,
};

/// Returns the next answer of the model: the edit of a file that it has written anew if one is planned, else its next step.
/// The flag says if the answer is one to what the window holds.
pub(super) async fn next_turn(run: &mut RunState) -> Result<(Turn, bool), Stop> {
    if let Some(path) = run.rails.rewrites.take_repair() {
        plan_file(run, &path).await?;
    }
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
    match args["path"].as_str() {
        Some(path) => plan_file(run, path).await,
        None => Ok(()),
    }
}

/// Plans that a very small model writes a file that the request names, and that it has left as it is.
pub(super) async fn plan_requested(run: &mut RunState, path: &str) -> Result<(), Stop> {
    if is_very_small(run) { plan_file(run, path).await } else { Ok(()) }
}

/// Plans that a very small model writes a file anew in place of its first change of it, and that every model in steps does so
/// with a file that it changes because a check failed.
async fn plan_first_edit(run: &mut RunState, step: &Turn) -> Result<(), Stop> {
    let [call] = step.calls.as_slice() else { return Ok(()) };
    if ![EDIT_FILE, WRITE_FILE].contains(&&*call.name) {
        return Ok(());
    }
    let args: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let Some(path) = args["path"].as_str() else { return Ok(()) };
    let rewrites = &run.rails.rewrites;
    let is_due = rewrites.repairs(path) || is_very_small(run);
    if is_due && !rewrites.has(path) { plan_file(run, path).await } else { Ok(()) }
}

/// Runs the checks right after a file was written anew because one of them failed. While it fails, the file is written anew
/// once more: with steps in between, models undo what they have repaired.
///
/// # Errors
///
/// See [`run_checks::check_answer`].
pub(super) async fn check_repair(run: &mut RunState, turn: &Turn) -> Result<(), Stop> {
    let args: Value =
        turn.calls.first().and_then(|call| serde_json::from_str(&call.arguments).ok()).unwrap_or_default();
    let Some(path) = args["path"].as_str().filter(|path| run.rails.rewrites.repairs(path)) else {
        return Ok(());
    };
    match run_checks::check_answer(run).await? {
        CheckedAnswer::Unchecked => {}
        CheckedAnswer::Failed => plan_file(run, path).await?,
        CheckedAnswer::Passed => {
            run.rails.rewrites.forget_failed_check();
            run.messages.push_note("The checks pass now.");
        }
    }
    Ok(())
}

fn is_very_small(run: &RunState) -> bool {
    run.model.provider.parameters().is_some_and(|count| count < VERY_SMALL_MODEL)
}

async fn plan_file(run: &mut RunState, path: &str) -> Result<(), Stop> {
    let in_steps = run.model.provider.works_in_steps(run.model.agent.tool_role);
    let is_possible = run.rails.config.errors && run.tools.reading_is_free && in_steps;
    let is_done = run.rails.file_changes.is_changed_well(path) && !run.rails.rewrites.repairs(path);
    if !is_possible || is_done {
        return Ok(());
    }
    let (work_dir, name) = (Arc::clone(&run.tools.work_dir), path.to_owned());
    let reading = move || match readable_text(&work_dir, &name, MAX_REWRITTEN_FILE) {
        None if !file_exists(&work_dir, &name) => Some(String::new()),
        content => content,
    };
    if let Some(content) = blocking(reading).join().await? {
        run.rails.rewrites.plan(path, &content);
        if is_very_small(run) {
            run.rails.rewrites.note_whole_change(path);
        }
    }
    Ok(())
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
