//! Calls that cannot be run as they are: mended by asking once more, told to the model, in the end given up.

use crate::{
    core::ToolCall,
    provider::{ChatRequest, ProviderError, Turn},
    tools::schema::{InvalidCall, check},
};

use super::{
    bridge::blocking,
    model_call::Deltas,
    protocol::{FailureKind, RunError},
    run_loop::{RunLoop, Stop},
};

/// Turns in a row with nothing but broken calls that end a run.
pub(super) const BROKEN_TURNS: u32 = 3;

/// Goes to the model with the result of the last call that was whole.
const CUT: &str =
    "[your answer was cut behind this call: it had reached its limit of tokens. What followed is lost.]";

/// The model cannot call.
pub(super) fn hopeless() -> RunError {
    let fact = format!("the model made {BROKEN_TURNS} turns in a row of calls that cannot be run");
    RunError::new(FailureKind::Limit, fact).hint("use a model that was trained to call tools")
}

impl RunLoop<'_> {
    /// Has the first broken call of an answer made once more, bound to the tool's schema, where the server
    /// can do that. `false` when all of the answer's calls are broken even so.
    pub(super) async fn mend(&mut self, turn: &mut Turn) -> Result<bool, Stop> {
        if turn.calls.is_empty() {
            return Ok(true);
        }
        let faults = self.faults(turn.calls.clone()).await?;
        let broken = faults.iter().filter(|fault| fault.is_some()).count();
        let named = |fault: &Option<InvalidCall>| fault.as_ref().and_then(|fault| fault.tool.clone());
        let first = faults.iter().enumerate().find_map(|(at, fault)| Some((at, named(fault)?)));
        if let Some((at, tool)) = first
            && self.provider.can_force_tool()
        {
            tracing::info!(tool, "a call cannot be run as it is; asking once more");
            if let Some(call) = self.forced(&tool).await? {
                let ToolCall { name, arguments, .. } = call;
                turn.calls[at] = ToolCall { id: turn.calls[at].id.clone(), name, arguments };
                return Ok(true);
            }
        }
        Ok(broken < turn.calls.len())
    }

    async fn faults(&self, calls: Vec<ToolCall>) -> Result<Vec<Option<InvalidCall>>, Stop> {
        let defs = self.tools.defs();
        let mut checking =
            blocking(move || calls.iter().map(|call| check(call, &defs).err()).collect::<Vec<_>>());
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stop::Cancelled),
            faults = checking.join() => Ok(faults?),
        }
    }

    /// A sound call of `tool`, if asking for it gives one. A server that fails here has answered before.
    async fn forced(&mut self, tool: &str) -> Result<Option<ToolCall>, Stop> {
        let request = self.request(self.window.messages(), self.agent.sampling.reply_limit());
        let request = ChatRequest { force_tool: Some(tool.to_owned()), ..request };
        let turn = match self.ask(request, Deltas::Hidden).await? {
            Ok(turn) => turn,
            Err(ProviderError::Cancelled) => return Err(Stop::Cancelled),
            Err(error) => {
                tracing::info!(%error, "asking once more failed");
                return Ok(None);
            }
        };
        let calls: Vec<ToolCall> = turn.calls.into_iter().filter(|call| call.name == tool).take(1).collect();
        let faults = self.faults(calls.clone()).await?;
        Ok(calls.into_iter().next().filter(|_| faults.iter().all(Option::is_none)))
    }

    /// The output of `call`, and before the last one of an answer that was cut, a word about that.
    pub(super) fn noted(&self, call: &ToolCall, output: &str) -> String {
        match &self.cut_after {
            Some(last) if *last == call.id => format!("{CUT}\n\n{output}"),
            _ => output.to_owned(),
        }
    }
}
