//! Checks the calls of an answer. If one cannot be run, the model is asked once more for that call.

use kontekst_core::ToolCall;
use kontekst_provider::{ChatRequest, Turn};
use kontekst_tools::{
    ToolBox,
    schema::{CheckedCall, InvalidCall, check},
};

use crate::{
    bridge::blocking,
    generate::{GenerateError, Visibility, generate},
    run::Stop,
    run_state::RunState,
};

/// The calls of one turn, each checked once against the tools that its request offered.
pub(crate) struct CheckedCalls {
    pub(super) calls: Vec<TurnCall>,
    pub(super) tools: ToolBox,
}

/// One call, and the result of the check.
pub(super) struct TurnCall {
    pub(super) call: ToolCall,
    pub(super) result: Result<CheckedCall, InvalidCall>,
}

impl TurnCall {
    /// Gives the call the name of the tool that it was taken for, and the corrected arguments, so that the model reads what ran
    /// and no server refuses the conversation.
    fn mend(&mut self) {
        match &self.result {
            Ok(checked) => {
                self.call.name.clone_from(&checked.name);
                self.call.arguments.clone_from(&checked.arguments);
            }
            Err(InvalidCall { tool: Some(tool), .. }) => self.call.name.clone_from(tool),
            Err(InvalidCall { tool: None, .. }) => {}
        }
    }
}

/// Checks the calls of an answer. The first call whose arguments do not fit its tool is replaced by one that
/// the model generates under the tool's schema, if the server supports that.
pub(crate) async fn check_calls(run: &mut RunState, turn: &mut Turn) -> Result<CheckedCalls, Stop> {
    let tools = run.tools.all.clone();
    if turn.calls.is_empty() {
        return Ok(CheckedCalls { calls: Vec::new(), tools });
    }
    let mut calls = check_all(run, turn.calls.clone(), &tools).await?;
    for (written, checked) in turn.calls.iter_mut().zip(&mut calls) {
        checked.mend();
        written.clone_from(&checked.call);
    }
    let broken = calls.iter().enumerate().find_map(|(index, call)| {
        let tool = call.result.as_ref().err()?.tool.clone()?;
        Some((index, tool))
    });
    if let Some((index, tool)) = broken
        && run.model.provider.can_force_tool()
        // A step fits its tool already, but for the content of a file, which is asked for in another way.
        && !run.model.works_in_steps()
    {
        tracing::info!(tool, "a call cannot be run as it is; asking once more");
        if let Some(TurnCall { call, result }) = generate_call(run, &tool, &tools).await? {
            let call = ToolCall { id: turn.calls[index].id.clone(), ..call };
            turn.calls[index] = call.clone();
            calls[index] = TurnCall { call, result };
        }
    }
    Ok(CheckedCalls { calls, tools })
}

async fn check_all(run: &RunState, calls: Vec<ToolCall>, tools: &ToolBox) -> Result<Vec<TurnCall>, Stop> {
    let defs = tools.defs();
    let mut checking = blocking(move || {
        let check = |call: ToolCall| TurnCall { result: check(&call, &defs), call };
        calls.into_iter().map(check).collect()
    });
    Ok(run.io.unless_cancelled(checking.join()).await??)
}

/// Asks the model for a call of `tool` and nothing else. Returns `None` if that brings no valid call. An
/// error of the provider is not an error of the run, because the model has already answered.
async fn generate_call(run: &mut RunState, tool: &str, tools: &ToolBox) -> Result<Option<TurnCall>, Stop> {
    let request = run.request(run.messages.window.messages(), run.model.agent.sampling.reply_limit());
    let request = ChatRequest { force_tool: Some(tool.to_owned()), ..request };
    let turn = match generate(run, request, Visibility::Hidden).await {
        Ok(turn) => turn,
        Err(GenerateError::Stop(stop)) => return Err(stop),
        Err(GenerateError::Provider(error)) => {
            tracing::info!(%error, "asking once more failed");
            return Ok(None);
        }
    };
    let Some(call) = turn.calls.into_iter().find(|call| call.name == tool) else { return Ok(None) };
    let mut checked = check_all(run, vec![call], tools).await?;
    Ok(checked.pop().filter(|call| call.result.is_ok()))
}
