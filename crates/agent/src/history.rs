//! Loads the history of a run, and counts what the window must hold.

use kontekst_core::{Message, SessionId};
use kontekst_provider::{PartTokens, RequestParts};
use kontekst_store::{config::FALLBACK_CONTEXT_SIZE, sessions::SessionLog};

use crate::context::{Budget, estimate};

use super::{
    model::RunModel,
    protocol::{Event, FailureKind, RunError},
    request::History,
    run::EventSender,
    shared::Shared,
    toolset::RunTools,
};

/// The smallest context size that a client may ask for, in tokens. It is the smallest in the configuration,
/// too.
const MIN_CONTEXT_SIZE: u32 = 256;

/// Returns the history that the client provides or that is in memory.
pub(super) fn provided_messages(history: History) -> Vec<Message> {
    match history {
        History::Provided(messages) => messages,
        History::InMemory(conversation) => conversation.messages(),
        History::New | History::Session(_) => Vec::new(),
    }
}

/// Counts the system message, the tool definitions and those `messages` that have no count yet.
///
/// Everything is counted with one question to the server. In a stored session, and if there are messages to
/// count, the prompt is part of that question, because the server's count of a long request says too little
/// about the prompt. A new session spares itself the extra text.
pub(super) fn count_parts(
    model: &RunModel,
    tools: &RunTools,
    messages: &mut [Message],
    prompt: &str,
    stored: bool,
) -> PartTokens {
    let uncounted: Vec<String> =
        messages.iter().filter(|message| message.tokens == 0).map(text_of_message).collect();
    let mut texts: Vec<&str> = uncounted.iter().map(String::as_str).collect();
    if stored || !uncounted.is_empty() {
        texts.push(prompt);
    }
    let defs = tools.all.defs();
    let parts = RequestParts { system: &model.system, tools: &defs, texts };
    let counts = model.provider.count_parts(&parts, &model.cancel);
    for (message, tokens) in messages.iter_mut().filter(|message| message.tokens == 0).zip(&counts.texts) {
        message.tokens = *tokens;
    }
    counts
}

/// Returns everything of a message that the model reads.
fn text_of_message(message: &Message) -> String {
    let mut text = message.with_context().into_owned();
    for call in &message.tool_calls {
        text.push_str(&call.name);
        text.push_str(&call.arguments);
    }
    if let Some(result) = &message.tool_result {
        text.push_str(&result.output);
    }
    text
}

/// Returns the tokens of the window. The model's own window is the limit; `requested` is the client's context size, and
/// replaces the configured one. Where neither the configuration nor the model says anything, the window has
/// [`FALLBACK_CONTEXT_SIZE`] tokens.
pub(super) fn context_size(shared: &Shared, model: &RunModel, requested: Option<u32>) -> u32 {
    let configured = model.agent.context_size.or(shared.config.context_size);
    let limit = model.provider.window().or(configured).unwrap_or(FALLBACK_CONTEXT_SIZE);
    let wanted = requested.map(|requested| requested.max(MIN_CONTEXT_SIZE)).or(configured);
    wanted.map_or(limit, |wanted| wanted.min(limit))
}

/// Divides a window of `size` tokens.
pub(super) fn window_budget(model: &RunModel, size: u32, counts: &PartTokens) -> Budget {
    Budget::new(size, model.agent.sampling.reply_limit(), counts.system, counts.tools)
}

/// Reads the newest messages of a session that fit in `budget` tokens.
pub(super) fn stored_messages(
    shared: &Shared,
    log: &SessionLog,
    session: &SessionId,
    budget: u32,
    events: &EventSender,
) -> Result<Vec<Message>, RunError> {
    let tail =
        log.tail(budget, &estimate).map_err(|error| RunError::from_source(FailureKind::Storage, &error))?;
    if shared.open_sessions.damage_said.is_new(session, tail.damaged) {
        let lines = if tail.damaged == 1 { "1 line".to_owned() } else { format!("{} lines", tail.damaged) };
        events.send_blocking(Event::Notice(format!(
            "{lines} of the session {session} cannot be read and are left out; `kontekst sessions show {session}` shows where"
        )));
    }
    Ok(shared.open_sessions.history_starts.trim(session, tail, budget))
}
