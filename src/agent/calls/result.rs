//! The results of calls as the model reads them: with what the rails say about them.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    agent::{
        bridge::blocking,
        ledger::FileChange,
        rails::{change_notes, help},
        run::Stop,
        run_state::RunState,
    },
    core::{ToolCall, ToolDef, ToolFailureKind, ToolOutcome},
    tools::{Effect, Tool, schema::InvalidCall},
};

use super::plan::DaemonCall;

/// A call that runs in the daemon, kept for the time when its result is there.
pub(super) struct CallInDaemon {
    tool: Arc<dyn Tool>,
    def: ToolDef,
    args: Value,
    effect: Effect,
}

/// The note that a model in steps reads after a call that would change nothing.
const IT_IS_SO: &str =
    "[It is so already. If nothing else is to be done, call answer and say that it is so already.]";

impl CallInDaemon {
    pub(super) fn new(call: &DaemonCall) -> Self {
        let DaemonCall { tool, args, proposal, .. } = call;
        Self { tool: Arc::clone(tool), def: tool.def(), args: args.clone(), effect: proposal.effect.clone() }
    }

    /// Notes the result of the call, and returns it as the model is to read it.
    pub(super) async fn result_for_model(
        self,
        run: &mut RunState,
        call: &ToolCall,
        outcome: &ToolOutcome,
    ) -> Result<ToolOutcome, Stop> {
        let nature = self.def.nature;
        run.ledger.note_call(call, nature, outcome);
        let change = self.note_change(run, outcome).await?;
        let help = self.help(run).await?;
        let changes_nothing = outcome.failure_kind() == Some(ToolFailureKind::NothingToChange)
            || run.ledger.has_just_changed_nothing();
        if changes_nothing || run.ledger.repetitions() > 1 {
            run.offer.note_repeated(&call.name, nature);
        }
        let note = run.rails.note(call, nature, &run.ledger);
        let so = if changes_nothing && run.model.works_in_steps() { IT_IS_SO } else { "" };
        let notes = [change, help, so.to_owned(), note.unwrap_or_default()];
        let notes = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join("\n\n");
        Ok(outcome.clone().with_text(&notes))
    }

    /// Notes a change that was carried out, and returns what the model reads about it.
    async fn note_change(&self, run: &mut RunState, outcome: &ToolOutcome) -> Result<String, Stop> {
        let Effect::Change(change) = &self.effect else { return Ok(String::new()) };
        if outcome.is_error() {
            return Ok(String::new());
        }
        let (change, config) = (Arc::clone(change), run.rails.config.clone());
        let is_whole = self.def.whole_file.is_some();
        let judging = move || {
            let judged = FileChange::new(&change);
            let notes = change_notes(&config, is_whole, &change, &judged);
            (judged, notes)
        };
        let (judged, notes) = blocking(judging).join().await?;
        run.ledger.note_change(judged);
        Ok(notes)
    }

    /// Returns what helps the model after several failures in a row.
    async fn help(self, run: &RunState) -> Result<String, Stop> {
        let failures = run.ledger.failures_in_a_row();
        if failures < 2 || !run.rails.config.errors {
            return Ok(String::new());
        }
        let Self { tool, def, args, .. } = self;
        let (work_dir, shows_file) = (Arc::clone(&run.tools.work_dir), run.tools.reading_is_free);
        let helping = move || {
            let own = if shows_file { tool.help(&args, &work_dir, failures) } else { String::new() };
            let parts = [own, help(Some(&def.name), std::slice::from_ref(&def), failures)];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
        };
        Ok(blocking(helping).join().await?)
    }
}

/// Returns the result of a call that cannot be run, for the client and for the model.
pub(super) fn invalid_call(
    run: &mut RunState,
    call: &ToolCall,
    invalid: InvalidCall,
) -> (ToolOutcome, ToolOutcome) {
    let InvalidCall { reason, tool } = invalid;
    let reason = run.offer.take_refusal().unwrap_or(reason);
    let outcome = ToolOutcome::failed(ToolFailureKind::InvalidArguments, reason);
    let defs = run.tools.all.defs();
    let def = defs.iter().find(|def| Some(&def.name) == tool.as_ref());
    run.ledger.note_call(call, def.map(|def| def.nature).unwrap_or_default(), &outcome);
    let failures = if run.rails.config.errors { run.ledger.failures_in_a_row() } else { 0 };
    let note =
        run.rails.note(call, def.map(|def| def.nature).unwrap_or_default(), &run.ledger).unwrap_or_default();
    let for_model = outcome.clone().with_text(&help(tool.as_deref(), &defs, failures)).with_text(&note);
    (outcome, for_model)
}
