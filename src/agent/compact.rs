//! A conversation that outgrows the window is summarised by the model that had it.

use crate::{
    config::Compaction,
    context::estimate,
    core::{Message, Role},
    provider::ProviderError,
    sessions::summary_messages,
};

use super::{
    model_call::Deltas,
    protocol::Event,
    run_loop::{RunLoop, Stop},
};

const INSTRUCTION: &str = "Summarise our conversation so far, so that it can go on without the original: what \
    was asked, what was found, decided and changed (names, paths, numbers exactly), and what is still open. \
    Plain text, no tool calls, nothing else.";

impl RunLoop<'_> {
    /// Makes room for a prompt of `prompt` tokens by a summary, where that is wanted and worth it.
    ///
    /// The request is the conversation as the server has it in its cache, and one question more. Once at
    /// most in a run, and whatever goes wrong, trimming still can: this cannot loop.
    pub(super) async fn make_room(&mut self, prompt: u32) -> Result<(), Stop> {
        if self.compaction() != Compaction::Summary || !self.window.crowded(prompt) {
            return Ok(());
        }
        self.emit(Event::Notice("the conversation is long; the model is asked to summarise it".to_owned()))
            .await?;
        let mut messages = self.window.messages();
        messages.push(Message::text(Role::User, INSTRUCTION));
        let request = self.request(messages, self.window.summary_limit());
        let turn = match self.ask(request, Deltas::Hidden).await? {
            Ok(turn) => turn,
            Err(ProviderError::Cancelled) => return Err(Stop::Cancelled),
            // The run's own request will meet the same trouble, and knows what to do about it.
            Err(error) => {
                tracing::warn!(%error, "no summary");
                return Ok(());
            }
        };
        let summary = turn.content.trim();
        if summary.is_empty() {
            return Ok(());
        }
        let tokens = turn.usage.map_or(0, |usage| usage.completion);
        self.recorder.compacted(summary.to_owned(), tokens).await?;
        let messages_before = self.window.history_messages();
        let (before, after) = self.window.compact(summary_messages(summary, tokens, &estimate));
        let messages_after = self.window.history_messages();
        self.emit(Event::Compacted { before, after, messages_before, messages_after }).await
    }
}
