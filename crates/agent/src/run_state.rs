//! The state of a run in progress. One task owns it.

use std::{sync::Arc, time::SystemTime};

use kontekst_core::{AnswerOptions, CallId, Message, SessionId, ToolCall, ToolOutcome};
use kontekst_provider::{ChatRequest, StepOptions};

use super::{
    checks::Checks,
    ledger::Ledger,
    limits::RunLimits,
    messages::RunMessages,
    model::RunModel,
    offer::Offer,
    parking::Parking,
    pending_calls::PendingApproval,
    protocol::{Command, Decision, Event, ProposedCall},
    rails::Rails,
    request::Expects,
    run::{RunIo, Stop},
    shared::Shared,
    toolset::RunTools,
};

/// The state of a run in progress. Each part has its own methods; here are those that need several parts.
pub(super) struct RunState {
    pub(super) shared: Arc<Shared>,
    pub(super) session: SessionId,
    pub(super) io: RunIo,
    pub(super) messages: RunMessages,
    pub(super) model: RunModel,
    pub(super) tools: RunTools,
    pub(super) limits: RunLimits,
    pub(super) rails: Rails,
    pub(super) ledger: Ledger,
    pub(super) offer: Offer,
    pub(super) expects: Expects,
    pub(super) checks: Checks,
    pub(super) parking: Parking,
}

impl RunState {
    /// Handles a command that arrives while no call waits for the client: it is ignored. `None` means that no more
    /// will come.
    pub(super) fn handle_command(&mut self, command: Option<&Command>) {
        if command.is_none() {
            self.io.close_commands();
        }
    }

    /// Returns true if there is a tool of this name.
    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.tools.all.find(name).is_some()
    }

    /// Builds the request for the next answer to `messages`, which may take at most `max_tokens` tokens.
    pub(super) fn request(&self, messages: Vec<Message>, max_tokens: u32) -> ChatRequest {
        ChatRequest {
            system: Arc::clone(&self.model.system),
            messages,
            tools: self.tools.all.defs(),
            sampling: self.model.agent.sampling.clone(),
            options: AnswerOptions::default(),
            max_tokens: self.limits.limit_answer_tokens(max_tokens),
            tool_role: self.model.agent.tool_role,
            rescue: self.rails.config.rescue,
            thinking: true,
            steps: StepOptions { reminder: self.rails.config.reminder, ..StepOptions::default() },
            force_tool: None,
            session: self.model.cache_key.clone(),
            prompt_tokens: self.messages.window.prompt_tokens(),
        }
    }

    /// Stores the result of a call and puts it into the window for the next turn.
    pub(super) async fn push_result(&mut self, call: &ToolCall, outcome: &ToolOutcome) -> Result<(), Stop> {
        Ok(self.messages.push_result(call, outcome, &self.model).await?)
    }

    /// Stores a result for each call that will not run because the run is over. A parked call gets none, because it can
    /// run later.
    pub(super) async fn push_unstarted(&mut self, calls: impl Iterator<Item = ToolCall> + Send) {
        if self.parking.holds_calls() {
            return;
        }
        self.messages.push_unstarted(calls, &self.model).await;
    }

    /// Registers calls that wait for a decision, so that other clients can see them and decide.
    pub(super) fn add_pending(&self, calls: &[ProposedCall]) {
        self.io.pending.add(PendingApproval {
            run: self.messages.recorder.run().clone(),
            session: self.session.clone(),
            agent: self.model.agent.id.to_string(),
            calls: calls.to_vec(),
            since: SystemTime::now(),
        });
    }

    /// Reports the decision on a call. `denial` is the reason of a denial.
    pub(super) async fn report_decision(&self, call: CallId, decision: Decision) -> Result<(), Stop> {
        self.io.send(Event::ToolDecided { call, decision }).await
    }
}
