//! One answer of the model: asked for, and asked for again where that helps.

use std::sync::{Arc, PoisonError};

use tokio::runtime::Handle;

use crate::{
    context::estimate,
    core::{Message, Role},
    provider::{ChatRequest, Delta, ProviderError, Turn},
};

use super::{
    bridge::blocking,
    prepare::{open_model, provider_error},
    protocol::Event,
    run_loop::{RunLoop, Stop},
};

/// Whether the user sees what the model says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deltas {
    Shown,
    Hidden,
}

impl RunLoop<'_> {
    /// One answer of the model, trimming or reconnecting where that helps.
    pub(super) async fn generate(&mut self) -> Result<Turn, Stop> {
        let dropped = self.window.fit();
        if dropped.history + dropped.outputs > 0 {
            self.trimmed(dropped.history, dropped.outputs).await?;
        }
        let mut reopened = false;
        loop {
            let reply = self.agent.sampling.reply_limit();
            match self.ask(self.request(self.window.messages(), reply), Deltas::Shown).await? {
                Ok(turn) => return Ok(turn),
                Err(ProviderError::Cancelled) => return Err(Stop::Cancelled),
                Err(ProviderError::Overflow { prompt_tokens, window }) => {
                    let Some(dropped) = self.window.overflowed(prompt_tokens, window) else {
                        return Err(provider_error(&ProviderError::Overflow { prompt_tokens, window }).into());
                    };
                    self.trimmed(dropped.history, dropped.outputs).await?;
                }
                Err(ProviderError::Unreachable { started: false, .. }) if !reopened => {
                    reopened = true;
                    self.reopen().await?;
                }
                Err(error) => return Err(provider_error(&error).into()),
            }
        }
    }

    async fn trimmed(&self, history: usize, outputs: usize) -> Result<(), Stop> {
        let text = format!(
            "the window is full: left out {history} earlier message(s) and {outputs} tool output(s); \
             the session file keeps them"
        );
        self.emit(Event::Notice(text)).await
    }

    /// What answered is gone: finds or starts a server again.
    async fn reopen(&mut self) -> Result<(), Stop> {
        let (models, agent) = (Arc::clone(&self.shared.models), self.agent.clone());
        let (emitter, cancel) = (self.emitter.clone(), self.cancel.clone());
        let runtime = Handle::current();
        let mut opening = blocking(move || {
            let emit = |event| emitter.emit_blocking(event, &cancel, &runtime);
            open_model(&*models, &agent, &cancel, &emit)
        });
        self.provider = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stop::Cancelled),
            provider = opening.join() => provider??,
        };
        Ok(())
    }

    pub(super) fn request(&self, messages: Vec<Message>, max_tokens: u32) -> ChatRequest {
        ChatRequest {
            system: Arc::clone(&self.system),
            messages,
            tools: self.tools.defs(),
            sampling: self.agent.sampling.clone(),
            max_tokens: self.standing.tokens(max_tokens),
            tool_role: self.agent.tool_role,
            force_tool: None,
            session: self.session.clone(),
            prompt_tokens: self.window.prompt_tokens(),
        }
    }

    /// One request. Deltas go straight from the provider's thread to the door.
    pub(super) async fn ask(
        &mut self,
        request: ChatRequest,
        deltas: Deltas,
    ) -> Result<Result<Turn, ProviderError>, Stop> {
        let provider = Arc::clone(&self.provider);
        let (emitter, cancel) = (self.emitter.clone(), self.cancel.clone());
        let partial = Arc::clone(&self.partial);
        let runtime = Handle::current();
        let mut call = blocking(move || {
            let mut sink = |delta| {
                let event = match delta {
                    Delta::Text(_) | Delta::Reasoning(_) if deltas == Deltas::Hidden => return,
                    Delta::Text(text) => {
                        partial.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
                        Event::Text(text)
                    }
                    Delta::Reasoning(text) => Event::Reasoning(text),
                    Delta::Progress(progress) => Event::Progress(progress),
                };
                emitter.emit_blocking(event, &cancel, &runtime);
            };
            provider.generate(&request, &cancel, &mut sink)
        });
        loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Stop::Cancelled),
                () = self.emitter.closed() => return Err(Stop::Cancelled),
                command = self.command() => self.hear(command)?,
                turn = call.join() => {
                    let turn = turn?;
                    if let (Some(purse), Ok(turn)) = (&self.standing.purse, &turn) {
                        purse.spend(turn.usage.map_or_else(|| written(turn), |usage| usage.completion));
                    }
                    return Ok(turn);
                }
            }
        }
    }
}

/// Tokens of an answer that nobody counted.
fn written(turn: &Turn) -> u32 {
    let mut answer = Message::text(Role::Assistant, turn.content.clone());
    answer.tool_calls.clone_from(&turn.calls);
    estimate(&answer).saturating_add(u32::try_from(turn.reasoning.len() / 4).unwrap_or(u32::MAX))
}
