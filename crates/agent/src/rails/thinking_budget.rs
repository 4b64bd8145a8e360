//! Ends a thought that is longer than the agent allows.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use kontekst_core::Cancel;

/// The bytes of a token, as in the estimates of the context window.
const BYTES_PER_TOKEN: usize = 4;

/// The budget of one thought. The provider's thread counts, and the run reads the result.
#[derive(Clone)]
pub(crate) struct ThinkingBudget {
    left: Arc<AtomicUsize>,
    is_used_up: Arc<AtomicBool>,
    /// Ends the answer.
    cancel: Cancel,
}

impl ThinkingBudget {
    /// `cancel` is triggered when a thought has more than `tokens` tokens.
    pub(crate) fn new(tokens: u32, cancel: Cancel) -> Self {
        let bytes = (tokens as usize).saturating_mul(BYTES_PER_TOKEN);
        Self { left: Arc::new(AtomicUsize::new(bytes)), is_used_up: Arc::default(), cancel }
    }

    /// Returns the signal that ends the answer.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Counts a piece of the thought.
    pub(crate) fn spend(&self, thought: &str) {
        let left = self.left.load(Relaxed).saturating_sub(thought.len());
        self.left.store(left, Relaxed);
        if left == 0 && !self.is_used_up.swap(true, Relaxed) {
            self.cancel.cancel();
        }
    }

    /// Returns true if the thought was ended.
    pub(crate) fn is_used_up(&self) -> bool {
        self.is_used_up.load(Relaxed)
    }
}
