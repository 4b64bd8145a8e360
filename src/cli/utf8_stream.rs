//! Text that arrives as bytes, in pieces that end anywhere.

/// The first bytes of a character whose rest has not come.
#[derive(Default)]
pub(super) struct Utf8Stream {
    incomplete: Vec<u8>,
}

impl Utf8Stream {
    /// Returns the text of the next bytes. Those that are no UTF-8 become U+FFFD.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.incomplete.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.incomplete);
        let mut text = String::with_capacity(bytes.len());
        let mut read = 0;
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            read += chunk.valid().len() + chunk.invalid().len();
            if read == bytes.len() && begins_character(chunk.invalid()) {
                self.incomplete = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// Returns true if the rest of a character has not come.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.incomplete.is_empty()
    }
}

/// Returns true if more bytes can make a character of these.
fn begins_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
