//! One run about one file: its events become notifications.

use std::task::{Context, Poll, Waker};

use serde_json::json;

use kontekst_agent::{
    Run,
    protocol::{Command, Decision, Event, Outcome},
};
use kontekst_core::{CallId, ToolCall, ToolFailureKind, ToolOutcome};
use kontekst_provider::Progress;

use super::{
    super::{
        convert::{self, StreamError},
        error::Code,
        incident::FileGroup,
        notifier::{Correlation, NotDelivered},
    },
    FixTask, ProgressRange, Stop,
};

/// The size, in bytes, up to which text that is ready is joined. The joined text still fits into one message.
const MAX_JOINED_TEXT: usize = convert::MAX_TEXT / 2;

/// A run, and what its notifications need.
pub(super) struct FileRun<'a> {
    run: Run,
    pub(crate) group: &'a FileGroup,
    pub(crate) range: ProgressRange,
    /// The calls of the turn whose start the client has heard of.
    started: Vec<CallId>,
    /// The client has got text of the current answer.
    text_sent: bool,
    /// An event that was read ahead.
    next: Option<Event>,
}

impl<'a> FileRun<'a> {
    pub(super) fn new(run: Run, group: &'a FileGroup, range: ProgressRange) -> Self {
        Self { run, group, range, started: Vec::new(), text_sent: false, next: None }
    }

    async fn next_event(&mut self) -> Option<Event> {
        match self.next.take() {
            Some(event) => Some(event),
            None => self.run.next_event().await,
        }
    }

    /// Waits until the call has a decision that this client did not send. Call it while the run waits for a decision on
    /// that call: no other event comes then, except the last one, which [`FileRun::next_event`] still returns.
    pub(super) async fn decision_elsewhere(&mut self, id: &CallId) -> Decision {
        while self.next.is_none() {
            match self.run.next_event().await {
                Some(Event::ToolDecided { call, decision }) if call == *id => return decision,
                Some(event) => self.next = Some(event),
                None => break,
            }
        }
        std::future::pending().await
    }

    /// Appends the text of events that are ready, so that fewer notifications are sent. `text_of` returns the text of
    /// an event of the same kind, and gives any other event back; that one becomes the next event.
    fn join_ready_text(&mut self, text: &mut String, text_of: fn(Event) -> Result<String, Event>) {
        let mut context = Context::from_waker(Waker::noop());
        while text.len() < MAX_JOINED_TEXT {
            let Poll::Ready(Some(event)) = self.run.poll_event(&mut context) else { return };
            match text_of(event) {
                Ok(more) => text.push_str(&more),
                Err(other) => {
                    self.next = Some(other);
                    return;
                }
            }
        }
    }
}

impl FixTask {
    /// Handles the events of a run until it ends.
    pub(super) async fn follow(&mut self, mut run: FileRun<'_>) -> Result<Outcome, Stop> {
        loop {
            let event = tokio::select! {
                biased;
                () = self.request.cancel.cancelled() => return Err(Stop::Cancelled),
                // A change that the user has approved is written even if the time is over.
                () = tokio::time::sleep_until(self.deadline), if self.approved.is_none() => {
                    return self.fail_on_timeout().await;
                }
                event = run.next_event() => event.ok_or(Stop::Cancelled)?,
            };
            if let Event::Ended(outcome) = event {
                return Ok(outcome);
            }
            self.handle_event(&mut run, event).await?;
        }
    }

    async fn handle_event(&mut self, run: &mut FileRun<'_>, event: Event) -> Result<(), Stop> {
        match event {
            Event::ToolDecided { call, decision } => {
                if decision != Decision::Approved {
                    // Another client denied the change that the user of this one has approved.
                    self.approved.take_if(|approved| approved.is_for(&call));
                }
            }
            // Runs of this door have no subagents.
            Event::Started { .. }
            | Event::WaitingForSession
            | Event::TurnedBack(_)
            | Event::ToolsCompleted
            | Event::ToolOutput { .. }
            | Event::CheckStarted { .. }
            | Event::CheckFinished(_)
            | Event::Facts(_)
            | Event::Subagent(_)
            | Event::Ended(_) => {}
            Event::Notice(text) => {
                self.notifier.system_event("notice", "info", json!({"text": text})).await?;
            }
            Event::Compacted { before, after, .. } => {
                let summary = json!({"tokens_before": before, "tokens_after": after});
                self.notifier.system_event("compacted", "info", summary).await?;
            }
            Event::Progress(progress) => self.report_progress(&progress, &run.range).await?,
            Event::Text(text) => self.send_text(run, text).await?,
            Event::Reasoning(text) => self.send_reasoning(run, text).await?,
            Event::TurnCompleted { .. } => {
                run.started.clear();
                if std::mem::take(&mut run.text_sent) {
                    // All text was sent as it came. This only marks its end.
                    self.notify("ai_response", json!({"text": "", "partial": false})).await?;
                }
            }
            Event::ToolsProposed(proposed) => {
                for proposed in proposed {
                    if let Some(command) = self.decide_call(proposed, run).await? {
                        run.run.send(command);
                    }
                }
            }
            Event::ToolRequested { call, .. } => {
                self.notify("tool_call", convert::tool_call_started(&call.name, &call.arguments)).await?;
                run.started.push(call.id.clone());
                let outcome = self.ask_user(&call).await?;
                run.run.send(Command::ToolResult { call: call.id, outcome });
            }
            Event::ToolStarted(call) => {
                self.notify("tool_call", convert::tool_call_started(&call.name, &call.arguments)).await?;
                run.started.push(call.id);
            }
            Event::ToolFinished { call, outcome } => {
                self.handle_tool_finished(run, &call, &outcome).await?;
            }
        }
        Ok(())
    }

    async fn send_text(&mut self, run: &mut FileRun<'_>, mut text: String) -> Result<(), NotDelivered> {
        run.join_ready_text(&mut text, |event| match event {
            Event::Text(more) => Ok(more),
            other => Err(other),
        });
        if !run.text_sent {
            let description = format!("{}: answering", run.range.label);
            self.notifier.progress(run.range.at_fraction(0.5), "processing_response", description).await?;
            run.text_sent = true;
        }
        for piece in convert::split_text(&text) {
            self.notify("ai_response", json!({"text": piece, "partial": true})).await?;
        }
        Ok(())
    }

    async fn send_reasoning(&mut self, run: &mut FileRun<'_>, mut text: String) -> Result<(), NotDelivered> {
        run.join_ready_text(&mut text, |event| match event {
            Event::Reasoning(more) => Ok(more),
            other => Err(other),
        });
        for piece in convert::split_text(&text) {
            self.notify("thinking", json!({"text": piece})).await?;
        }
        Ok(())
    }

    async fn report_progress(
        &mut self,
        progress: &Progress,
        range: &ProgressRange,
    ) -> Result<(), NotDelivered> {
        let label = &range.label;
        let (fraction, description) = match progress {
            Progress::Queued { position } => {
                (0.0, format!("{label}: waiting for the model, place {position}"))
            }
            Progress::Loading { model, .. } => (0.0, format!("{label}: loading {model}")),
            Progress::Prefill { processed, total, .. } => {
                let fraction = f64::from(*processed) / f64::from((*total).max(1));
                (0.4 * fraction as f32, format!("{label}: reading, {processed} of {total} tokens"))
            }
            Progress::Postponed { seconds } => {
                (0.0, format!("{label}: the model server asks to wait {seconds} s"))
            }
            // The editor knows that the fix goes on, and a fraction that goes back would confuse.
            Progress::Requested { .. } | Progress::Writing { .. } => return Ok(()),
        };
        self.notifier.progress(range.at_fraction(fraction), "calling_ai_agent", description).await
    }

    async fn handle_tool_finished(
        &mut self,
        run: &mut FileRun<'_>,
        ToolCall { id, name, arguments }: &ToolCall,
        outcome: &ToolOutcome,
    ) -> Result<(), Stop> {
        // The client has not heard of a call that failed before it was proposed, so its start is sent now.
        if !run.started.contains(id) {
            self.notify("tool_call", convert::tool_call_started(name, arguments)).await?;
        }
        self.resolve_approved(id, outcome).await?;
        let is_refused = outcome.failure_kind() == Some(ToolFailureKind::OutsideWorkspace);
        if is_refused && matches!(name.as_str(), "write_file" | "edit_file") {
            let details = json!({"tool_name": name});
            let code = Code::FileModificationFailed;
            let error = StreamError::recoverable("PROPOSAL_REFUSED", code, outcome.text(), details);
            self.notifier.error(&error).await?;
        }
        if outcome.failure_kind() == Some(ToolFailureKind::TimedOut) {
            let details = json!({"tool_name": name});
            let error = StreamError::recoverable("TOOL_TIMEOUT", Code::ToolTimeout, outcome.text(), details);
            self.notifier.error(&error).await?;
        }
        self.notify("tool_call", convert::tool_call_ended(name, arguments, outcome)).await?;
        Ok(())
    }

    async fn notify(&self, name: &str, content: impl serde::Serialize) -> Result<(), NotDelivered> {
        self.notifier.notify(name, Correlation::None, content).await
    }
}
