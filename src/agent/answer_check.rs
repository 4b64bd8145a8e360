//! Judges an answer without calls: first by what the run knows, and then by what stands in the files.

use std::sync::Arc;

use crate::{
    provider::{FinishReason, Turn},
    tools::builtin::{file_exists, is_executable, remaining_places},
};

use super::{
    bridge::blocking,
    protocol::Event,
    rails::{AnswerCheck, FileAim},
    rewrite,
    run::Stop,
    run_state::RunState,
};

/// Replaces an answer that only repeats what the model was told by a sentence about the files that the run has changed.
pub(super) async fn replace_copy(run: &mut RunState, turn: &mut Turn) -> Result<(), Stop> {
    let last_read = run.messages.window.iter().last().map_or("", |message| {
        message.tool_result.as_ref().map_or(&*message.content, |result| &*result.output)
    });
    let Some(answer) = run.rails.own_answer(&turn.content, last_read) else { return Ok(()) };
    let reason = "the model repeated what it was told instead of an answer".to_owned();
    run.io.send(Event::TurnedBack(reason)).await?;
    run.io.send(Event::Text(answer.clone())).await?;
    turn.content = answer;
    turn.finish_reason = FinishReason::Stop;
    Ok(())
}

/// Returns if an answer is the end of the run, or what the model reads if it is not.
pub(super) async fn check_answer(run: &mut RunState, turn: &Turn) -> Result<AnswerCheck, Stop> {
    let has_tools = !run.tools.all.defs().is_empty();
    let check = run.rails.check_answer(turn, has_tools)?;
    let is_whole = turn.finish_reason != FinishReason::Length;
    if matches!(check, AnswerCheck::AskAgain { .. }) || !is_whole || !run.tools.reading_is_free {
        return Ok(check);
    }
    if let Some(again) = check_requested_files(run).await? {
        return Ok(again);
    }
    Ok(check_remaining_text(run).await?.unwrap_or(check))
}

/// Looks for files that were to be changed, created, removed or made executable, and were not.
async fn check_requested_files(run: &mut RunState) -> Result<Option<AnswerCheck>, Stop> {
    for file in run.rails.requested_files() {
        let (work_dir, path, aim) = (Arc::clone(&run.tools.work_dir), file.path.clone(), file.aim);
        let is_open = move || match aim {
            FileAim::Changed | FileAim::Gone => file_exists(&work_dir, &path),
            FileAim::Created => !file_exists(&work_dir, &path),
            FileAim::Executable => !is_executable(&work_dir, &path),
        };
        if blocking(is_open).join().await? {
            let check = run.rails.check_requested(&file)?;
            if !file.aim.needs_command() {
                rewrite::plan_requested(run, &file.path).await?;
            }
            return Ok(Some(check));
        }
    }
    Ok(None)
}

/// Looks for texts that were to be replaced at all their places.
async fn check_remaining_text(run: &mut RunState) -> Result<Option<AnswerCheck>, Stop> {
    for text in run.rails.replaced_texts() {
        let (work_dir, cancel) = (Arc::clone(&run.tools.work_dir), run.io.cancel().clone());
        let mut searching = blocking(move || {
            let places = remaining_places(&work_dir, &text, &cancel);
            (text, places)
        });
        let (text, places) = run.io.unless_cancelled(searching.join()).await??;
        if !places.is_empty() {
            return Ok(Some(run.rails.check_remaining(&text, &places)?));
        }
    }
    Ok(None)
}
