//! The starter model as a provider. `kontekst-starter` has the model and the rules that hold it to the request.

use std::ops::ControlFlow;

use kontekst_starter::{Answer, AnswerError, Content, Conversation, Event, Starter, Tool};

use super::{
    ChatRequest, Delta, Progress, Provider, ProviderError, Turn, Usage,
    chat::{
        ParsedCall,
        messages::{self, CallForm, Dialect},
        prompted::{self, ToolCallParser},
    },
    decoding::{decode_error, finish_reason},
};
use crate::core::{CallId, Cancel, CopyKind, Role, ToolCall, ToolDef};

/// The value of an agent's `model` that chooses the starter model, and its name in `status`.
pub const NAME: &str = "builtin";

/// The session of conversations that have none. Sharing its cache is safe: only the tokens that are the same are reused.
const NO_SESSION: &str = "";

/// Returns the line that the user reads once in each run that the starter model answers. `better` says how to get a better
/// model.
pub fn notice(better: &str) -> String {
    format!(
        "the small built-in model answers: it handles files and fetches pages when plainly asked, and nothing else; \
         {better}"
    )
}

/// The starter model, without a queue: callers take turns.
pub struct StarterModel {
    starter: Starter,
}

impl StarterModel {
    pub fn new(starter: Starter) -> Self {
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
        };
        let messages = messages::to_wire("", &request.messages, dialect);
        let asked = request.messages.iter().rfind(|message| message.role == Role::User);
        let tools: Vec<Tool<'_>> = request.tools.iter().map(starter_tool).collect();
        let forced = request.forced_tool().map(starter_tool);
        let session = request.session.as_ref().map_or_else(|| NO_SESSION.to_owned(), ToString::to_string);
        let conversation = Conversation {
            messages: &messages,
            request: asked.map_or("", |message| message.content.as_str()),
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
        let answer = answer.map_err(answer_error)?;
        turn(answer, request, sink)
    }

    /// Returns zeros: the model is shown a bounded part of whatever it is given, so no text can fill its window. How many
    /// tokens a prompt really has is in the usage of the turn.
    fn count_tokens(&self, texts: &[&str], _: &Cancel) -> Vec<u32> {
        vec![0; texts.len()]
    }

    fn window(&self) -> Option<u32> {
        Some(self.starter.context_size())
    }

    fn can_force_tool(&self) -> bool {
        true
    }

    fn slots(&self) -> usize {
        1
    }

    fn uses_history(&self) -> bool {
        false
    }
}

/// Makes a turn of an answer. The text of a call is sent only now, as far as it turns out to be no call of an offered
/// tool: that is only known at its end.
fn turn(answer: Answer, request: &ChatRequest, sink: &mut dyn FnMut(Delta)) -> Result<Turn, ProviderError> {
    let finish_reason = finish_reason(answer.finish)?;
    let usage = Usage {
        prompt: answer.prompt_tokens,
        completion: answer.completion_tokens,
        cached: answer.cached_tokens,
    };
    let mut turn = Turn { finish_reason, usage: Some(usage), ..Turn::default() };
    match answer.content {
        Content::Text(text) => turn.content = text,
        Content::Call(text) => {
            let mut parser = ToolCallParser::new(&request.tools, true);
            parser.push(&text, &mut turn.content);
            let calls = parser.finish(finish_reason, &mut turn.content).into_iter();
            let call = |call: ParsedCall| ToolCall {
                id: CallId::local(),
                name: call.name,
                arguments: call.arguments,
            };
            turn.calls = calls.filter(|call| !call.name.is_empty()).map(call).collect();
            if !turn.content.is_empty() {
                sink(Delta::Text(turn.content.clone()));
            }
        }
        Content::Arguments(text) => {
            turn.content = text;
            if let Some(tool) = request.forced_tool() {
                turn = prompted::into_forced_call(&tool.name, turn);
            }
        }
    }
    Ok(turn)
}

fn starter_tool(tool: &ToolDef) -> Tool<'_> {
    let copy = tool.copy.iter().map(|argument| (argument.name, starter_kind(argument.kind)));
    Tool { name: &tool.name, parameters: &tool.parameters, copy: copy.collect() }
}

fn starter_kind(kind: CopyKind) -> kontekst_starter::CopyKind {
    match kind {
        CopyKind::Path => kontekst_starter::CopyKind::Path,
        CopyKind::Url => kontekst_starter::CopyKind::Url,
        CopyKind::Pattern => kontekst_starter::CopyKind::Pattern,
        CopyKind::Content => kontekst_starter::CopyKind::Content,
        CopyKind::OldText => kontekst_starter::CopyKind::OldText,
        CopyKind::NewText => kontekst_starter::CopyKind::NewText,
        CopyKind::FirstLine => kontekst_starter::CopyKind::FirstLine,
        CopyKind::LastLine => kontekst_starter::CopyKind::LastLine,
    }
}

fn answer_error(error: AnswerError) -> ProviderError {
    match error {
        AnswerError::Overflow { prompt, window } => ProviderError::Overflow { prompt_tokens: prompt, window },
        AnswerError::Decode(error) => decode_error(&error),
        error @ AnswerError::Template(_) => ProviderError::Engine(error.to_string()),
    }
}
