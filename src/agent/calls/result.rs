//! The results of calls as the model reads them: with what the rails say about them.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    agent::{
        bridge::blocking,
        rails::{EDIT_FILE, help, judge_change, with_text},
        rewrite,
        run::Stop,
        run_state::RunState,
    },
    core::{ToolCall, ToolFailureKind, ToolOutcome},
    tools::{Effect, Tool, builtin::readable_text, schema::InvalidCall},
};

use super::plan::DaemonCall;

/// A larger file is not searched for the place that the request means, in bytes.
const MAX_FILE: u64 = 256 * 1024;

/// A call that runs in the daemon, kept for the time when its result is there.
pub(super) struct CallInDaemon {
    tool: Arc<dyn Tool>,
    args: Value,
    effect: Effect,
}

impl CallInDaemon {
    pub(super) fn new(call: &DaemonCall) -> Self {
        let DaemonCall { tool, args, proposal, .. } = call;
        Self { tool: Arc::clone(tool), args: args.clone(), effect: proposal.effect.clone() }
    }

    /// Counts the result of the call, and returns it as the model is to read it.
    pub(super) async fn result_for_model(
        self,
        run: &mut RunState,
        call: &ToolCall,
        outcome: &ToolOutcome,
    ) -> Result<ToolOutcome, Stop> {
        let Self { tool, args, effect } = self;
        let failures = run.rails.count_failure(Some(&call.name), outcome);
        let meant = match &effect {
            Effect::Fails(_) if run.tools.reading_is_free => meant_place(run, call, &args).await?,
            _ => None,
        };
        if failures > 0 && call.name == EDIT_FILE {
            rewrite::plan(run, &args).await?;
        }
        let notes = match &effect {
            Effect::Change(change) if !outcome.is_error() => {
                let change = Arc::clone(change);
                let (config, name) = (run.rails.config.clone(), call.name.clone());
                let judging = move || judge_change(&config, &name, &change);
                let (judged, notes) = blocking(judging).join().await?;
                run.rails.note_change(judged);
                notes
            }
            _ if failures > 1 => {
                let (defs, name) = (run.tools.all.defs(), call.name.clone());
                let (work_dir, shows_file) = (Arc::clone(&run.tools.work_dir), run.tools.reading_is_free);
                let helping = move || {
                    let own = if shows_file { tool.help(&args, &work_dir, failures) } else { String::new() };
                    let parts = [own, help(Some(&name), &defs, failures)];
                    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
                };
                blocking(helping).join().await?
            }
            _ => String::new(),
        };
        let notes = [notes, meant.unwrap_or_default()].join("\n\n");
        Ok(run.rails.result_for_model(call, outcome, &effect, notes.trim()))
    }
}

/// Returns which place the request means, if an edit failed because its text stands in the file several times.
async fn meant_place(run: &RunState, call: &ToolCall, args: &Value) -> Result<Option<String>, Stop> {
    let path = args["path"].as_str().filter(|_| run.rails.config.write_guard && call.name == EDIT_FILE);
    let Some(path) = path.map(str::to_owned) else { return Ok(None) };
    let work_dir = Arc::clone(&run.tools.work_dir);
    let content = blocking(move || readable_text(&work_dir, &path, MAX_FILE)).join().await?;
    Ok(content.and_then(|content| run.rails.change_guard.meant_place(&content, args)))
}

/// Returns the result of a call that cannot be run, for the client and for the model.
pub(super) fn invalid_call(run: &mut RunState, invalid: InvalidCall) -> (ToolOutcome, ToolOutcome) {
    let InvalidCall { reason, tool } = invalid;
    let outcome = ToolOutcome::failed(ToolFailureKind::InvalidArguments, reason);
    let failures = run.rails.count_failure(tool.as_deref(), &outcome);
    let help = help(tool.as_deref(), &run.tools.all.defs(), failures);
    let for_model = with_text(outcome.clone(), &help);
    (outcome, for_model)
}
