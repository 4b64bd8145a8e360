//! The starter model as a provider. `kontekst-starter` has the model and the rules that hold it to the request.

use std::ops::ControlFlow;

use kontekst_starter::{Answer, AnswerError, Content, Conversation, Event, Starter, Tool};

use kontekst_core::{CallId, Cancel, Role, ToolCall, ToolDef, ToolNature};

use super::{
    Capabilities, ChatRequest, Delta, FinishReason, Progress, Provider, ProviderError, Turn, Usage,
    chat::messages::{self, CallForm, Dialect},
    decoding::{decode_error, finish_reason},
};

/// The value of an agent's `model` that chooses the starter model, and its name in `status`.
pub const NAME: &str = "builtin";

/// The session of conversations that have none. Sharing its cache is safe: only the tokens that are the same are reused.
const NO_SESSION: &str = "";

/// Returns the line that the user reads once in each session that the starter model answers. `better` says how to get a better
/// model.
pub(crate) fn notice(better: &str) -> String {
    format!(
        "the small built-in model answers: it handles files and fetches pages when plainly asked, and nothing else; \
         {better}"
    )
}

/// The starter model, without a queue: callers take turns.
pub(crate) struct StarterModel {
    starter: Starter,
}

impl StarterModel {
    pub(crate) fn new(starter: Starter) -> Self {
        Self { starter }
    }
}

impl Provider for StarterModel {
    fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        // Its template knows calls and results, and leaves out the system text and the tools.
        let dialect = Dialect {
            tool_role: true,
            calls: CallForm::Native,
            system_role: true,
            reasoning: false,
            short_ids: true,
            images: false,
        };
        // It answers the last request, and uses nothing that was said before it.
        let asked = request.messages.iter().rposition(|message| message.role == Role::User);
        let messages = messages::to_text("", &request.messages[asked.unwrap_or_default()..], dialect);
        let tools: Vec<Tool<'_>> = request.tools.iter().map(starter_tool).collect();
        let forced = request.forced_tool().map(starter_tool);
        let session = request.session.as_ref().map_or_else(|| NO_SESSION.to_owned(), ToString::to_string);
        let conversation = Conversation {
            messages: &messages,
            request: asked.map_or("", |at| request.messages[at].content.as_str()),
            tools: &tools,
            forced: forced.as_ref(),
            session: &session,
            max_tokens: request.max_tokens,
        };
        let answer = self.starter.answer(&conversation, &|| cancel.is_cancelled(), &mut |event| {
            sink(match event {
                Event::Prefill { progress, cached } => Delta::Progress(Progress::Prefill {
                    processed: progress.processed,
                    total: progress.total,
                    cached,
                }),
                Event::Text(text) => Delta::Text(text.to_owned()),
            });
            ControlFlow::Continue(())
        });
        turn(answer.map_err(answer_error)?)
    }

    /// Returns zeros: the model is shown a bounded part of whatever it is given, so no text can fill its window. How many
    /// tokens a prompt really has is in the usage of the turn.
    fn count_tokens(&self, texts: &[&str], _: &Cancel) -> Vec<u32> {
        vec![0; texts.len()]
    }

    fn capabilities(&self) -> Capabilities {
        let window = Some(self.starter.context_size());
        Capabilities { window, slots: 1, forced_tool: true, ..Capabilities::default() }
    }
}

/// Makes a turn of an answer. A call that was cut off is none.
fn turn(answer: Answer) -> Result<Turn, ProviderError> {
    let finish_reason = finish_reason(answer.finish)?;
    let usage = Usage {
        prompt: answer.prompt_tokens,
        completion: answer.completion_tokens,
        cached: answer.cached_tokens,
    };
    let mut turn = Turn { finish_reason, usage: Some(usage), ..Turn::default() };
    match answer.content {
        Content::Text(text) => turn.content = text,
        Content::Call { .. } if finish_reason == FinishReason::Length => {}
        Content::Call { name, arguments } => {
            turn.calls.push(ToolCall { id: CallId::local(), name, arguments });
        }
    }
    Ok(turn)
}

fn starter_tool(tool: &ToolDef) -> Tool<'_> {
    Tool { name: &tool.name, parameters: &tool.parameters, own: tool.nature != ToolNature::Unknown }
}

fn answer_error(error: AnswerError) -> ProviderError {
    match error {
        AnswerError::Overflow { prompt, window } => ProviderError::Overflow { prompt_tokens: prompt, window },
        AnswerError::Decode(error) => decode_error(&error),
        error @ (AnswerError::Declined(_) | AnswerError::Template(_)) => {
            ProviderError::Engine(error.to_string())
        }
    }
}
