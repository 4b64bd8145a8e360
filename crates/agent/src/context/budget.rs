//! Token arithmetic: how the context window is divided, and estimates of what is not counted.

use kontekst_core::{IMAGE_TOKENS, Message};

/// The division of a context window. All values are in tokens of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) context_size: u32,
    /// Kept free for the answer.
    pub(crate) reply: u32,
    pub(crate) system: u32,
    pub(crate) tools: u32,
}

impl Budget {
    /// Divides a window. The agent's `max_tokens` is kept free for the answer, but at most a quarter of the
    /// window, so that the defaults (4096 of 4096) leave room for a conversation.
    pub(crate) fn new(context_size: u32, max_tokens: u32, system: u32, tools: u32) -> Self {
        Self { context_size, reply: max_tokens.min(context_size / 4), system, tools }
    }

    /// Returns the tokens that the history may take beside a prompt of `prompt` tokens.
    ///
    /// Source: architecture seed, "Context Management", less the room for the answer.
    pub(crate) fn history(&self, prompt: u32) -> u32 {
        self.messages().saturating_sub(prompt)
    }

    /// Returns the tokens that all messages together may take.
    pub(crate) fn messages(&self) -> u32 {
        self.context_size.saturating_sub(self.reply).saturating_sub(self.system).saturating_sub(self.tools)
    }
}

/// Estimates the tokens of a message that was not counted: its bytes / 4, as the seed's implementation does, and
/// [`IMAGE_TOKENS`] for each image.
pub(crate) fn estimate(message: &Message) -> u32 {
    let text = u32::try_from(message.text_bytes().div_ceil(4)).unwrap_or(u32::MAX);
    text.saturating_add(image_tokens(message))
}

/// Estimates the tokens of the images of a message.
pub(crate) fn image_tokens(message: &Message) -> u32 {
    u32::try_from(message.images.len()).unwrap_or(u32::MAX).saturating_mul(IMAGE_TOKENS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_leave_room_for_a_conversation() {
        let budget = Budget::new(4096, 4096, 200, 900);
        assert_eq!((budget.reply, budget.messages(), budget.history(72)), (1024, 1972, 1900));
    }

    #[test]
    fn a_window_that_is_too_small_leaves_no_tokens_and_does_not_overflow() {
        let budget = Budget::new(100, u32::MAX, u32::MAX, u32::MAX);
        assert_eq!((budget.messages(), budget.history(u32::MAX)), (0, 0));
    }
}
