//! The text of an answer that is being generated.

use std::sync::Arc;

use kontekst_core::Mutex;

/// The most text of an answer that is kept in case the answer is cut off, in bytes. No model reads as much of one message.
const MAX_PARTIAL_ANSWER: usize = 1024 * 1024;

/// The text so far of an answer. The provider's thread extends it; the run reads it if the answer is cut off. What arrives
/// after the first [`MAX_PARTIAL_ANSWER`] bytes is left out, because the provider holds the whole answer already.
#[derive(Clone, Default)]
pub(crate) struct PartialAnswer(Arc<Mutex<String>>);

impl PartialAnswer {
    pub(crate) fn push(&self, text: &str) {
        let mut answer = self.0.lock();
        if answer.len() < MAX_PARTIAL_ANSWER {
            answer.push_str(text);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock())
    }
}
