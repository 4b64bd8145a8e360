//! Keeps the text of an answer that may still be turned back, so that a file or a pipe does not get it.

/// The longest text that is kept, in bytes. A longer one is printed as it comes from there on.
const MAX_TEXT: usize = 1 << 20;

/// The text of the answer that is being written, in a run whose answers may be turned back.
#[derive(Default)]
pub(super) struct HeldAnswer {
    is_on: bool,
    text: String,
}

impl HeldAnswer {
    /// Keeps the answers of this run from now on.
    pub(super) fn start(&mut self) {
        self.is_on = true;
    }

    /// Adds a piece of the answer. Returns what is to be printed now.
    pub(super) fn push(&mut self, piece: &str) -> String {
        if !self.is_on {
            return piece.to_owned();
        }
        self.text.push_str(piece);
        if self.text.len() > MAX_TEXT { self.take() } else { String::new() }
    }

    /// Returns what is kept, because nothing turns it back any more.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Drops what is kept: the answer was turned back.
    pub(super) fn turn_back(&mut self) {
        self.text.clear();
    }
}
