//! The reports of a subagent to its parent.

use std::time::Duration;

use tokio::sync::mpsc;

use kontekst_core::{RunFacts, SessionId, ToolCall, ToolFailureKind, ToolOutcome};
use kontekst_store::subagent_log::SubagentEvent;

use crate::run::ProposedCall;

/// Sends the reports of one subagent to its parent.
pub(super) struct ReportSender {
    member: usize,
    sender: mpsc::Sender<(usize, SubagentReport)>,
}

/// The reports of a subagent to its parent.
pub(super) enum SubagentReport {
    /// An event that has been written to the log.
    Logged(SubagentEvent),
    /// Calls that wait for a decision.
    Proposed(Vec<ProposedCall>),
    /// A call that the client must run.
    Requested { call: ToolCall, timeout: Duration, subagent: SessionId },
    /// The last report.
    Finished(SubagentResult),
}

/// The end of a subagent.
pub(super) struct SubagentResult {
    pub(super) outcome: ToolOutcome,
    /// A call was denied in a way that ends the run, which ends the parent's run, too.
    pub(super) denied: bool,
    /// The facts of its run. `None` if they are not known.
    pub(super) facts: Option<RunFacts>,
}

impl ReportSender {
    pub(super) fn new(member: usize, sender: mpsc::Sender<(usize, SubagentReport)>) -> Self {
        Self { member, sender }
    }

    /// Sends a report. If the parent is gone, it has cancelled the run, which is about to end.
    pub(super) async fn send(&self, report: SubagentReport) {
        self.sender.send((self.member, report)).await.ok();
    }

    /// Sends the last report.
    pub(super) async fn finish(&self, result: SubagentResult) {
        self.send(SubagentReport::Finished(result)).await;
    }
}

impl SubagentResult {
    pub(super) fn failed(message: &str) -> Self {
        Self::from_failure(format!("the worker failed: {message}"))
    }

    pub(super) fn not_started(reason: &str) -> Self {
        Self::from_failure(format!("the worker was not started: {reason}"))
    }

    fn from_failure(message: String) -> Self {
        Self { outcome: ToolOutcome::failed(ToolFailureKind::Other, message), denied: false, facts: None }
    }
}
