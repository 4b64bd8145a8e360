//! The calls of the answer at which a run was parked, before its model is asked again.
//!
//! Each has its effect once. Its session says what happened in an earlier attempt: a call with a result is done, and one
//! without a mark that it has started has not run. Between the two the file decides, if the call changes one. A command may
//! have run, so it is not run again.

use std::sync::Arc;

use kontekst_core::{ToolCall, ToolFailureKind, ToolOutcome};
use kontekst_store::parked::ParkedCall;
use kontekst_tools::Executor;

use crate::{
    parking::OpenTurn,
    run::{Event, Outcome, Stop, blocking},
    state::RunState,
};

use super::{batch::run_calls, parked_call::content_name};

/// The fate of a call that was about to run when the program was ended.
enum Interrupted {
    /// It has had no effect, so it can run now.
    NotDone,
    Done,
    /// It is not run again, for this reason.
    Unknown(String),
}

/// Proposes and runs the calls of the parked answer that are not done. Does nothing in other runs. Returns the outcome of
/// the run if a decision ends it.
pub(crate) async fn resume_calls(run: &mut RunState) -> Result<Option<Outcome>, Stop> {
    let Some(OpenTurn { calls, started }) = run.parking.take_open() else { return Ok(None) };
    let mut rest = Vec::new();
    for call in calls {
        // The call that is run is the one that was shown, with the arguments as they were corrected.
        let parked = run.parking.parked_call(&call.id).cloned();
        let shown = parked.as_ref().map_or_else(|| call.clone(), |parked| parked.call.clone());
        if !started.contains(&call.id) {
            rest.push(shown);
            continue;
        }
        match interrupted(run, parked).await? {
            Interrupted::NotDone => rest.push(shown),
            Interrupted::Done => {
                run.checks.note_change();
                let message = "The change was made. The program was interrupted right after it.";
                finish(run, shown, ToolOutcome::done(message.to_owned())).await?;
            }
            Interrupted::Unknown(reason) => {
                run.checks.note_change();
                finish(run, shown, ToolOutcome::failed(ToolFailureKind::Cancelled, reason)).await?;
            }
        }
    }
    run.ledger.begin_turn();
    let calls = run.check(rest).await?;
    let outcome = run_calls(run, calls).await?;
    run.parking.forget_parked_calls();
    Ok(outcome)
}

/// Finds out what became of a call. `parked` is `None` for a call of an answer after the one at which the run was parked.
async fn interrupted(run: &RunState, parked: Option<ParkedCall>) -> Result<Interrupted, Stop> {
    let Some(parked) = parked else {
        let reason = "interrupted: it may have run; its outcome is unknown";
        return Ok(Interrupted::Unknown(reason.to_owned()));
    };
    let (tools, work_dir) = (run.tools.all.clone(), Arc::clone(&run.tools.work_dir));
    let mut looking = blocking(move || match tools.find(&parked.call.name) {
        Some(Executor::Daemon(tool)) => {
            let now = |args| tool.propose(&args, &work_dir).target.as_ref().map(content_name);
            judge(&parked, now(parked.call.parse_arguments().unwrap_or_default()).as_ref())
        }
        Some(Executor::Client { .. }) | None => judge(&parked, None),
    });
    Ok(looking.join().await?)
}

/// Judges by the content that the file of the call has now.
fn judge(parked: &ParkedCall, now: Option<&String>) -> Interrupted {
    match (&parked.before, &parked.after) {
        (Some(before), Some(_)) if now == Some(before) => Interrupted::NotDone,
        (Some(_), Some(after)) if now == Some(after) => Interrupted::Done,
        (Some(_), Some(_)) => Interrupted::Unknown(
            "the program was interrupted at this call, and the file is now neither as it was before nor as the call \
             would leave it; the call is not run again"
                .to_owned(),
        ),
        _ if parked.only_reads => Interrupted::NotDone,
        _ => Interrupted::Unknown(
            "the program was interrupted while this call ran: it may have run, wholly or in part, and it is not run again"
                .to_owned(),
        ),
    }
}

/// Stores the result of a call and reports it.
async fn finish(run: &mut RunState, call: ToolCall, outcome: ToolOutcome) -> Result<(), Stop> {
    run.ledger.note_unknown();
    run.messages.push_result(&call, &outcome).await?;
    run.io.send(Event::ToolFinished { call, outcome }).await
}
