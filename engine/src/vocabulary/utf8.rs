//! Bytes that arrive in pieces, as whole characters.

/// Keeps back what may yet become a character.
#[derive(Default)]
pub struct Utf8Decoder {
    held: Vec<u8>,
}

impl Utf8Decoder {
    /// The characters that `bytes` complete. What can become none is replaced by U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut done = 0;
        for chunk in self.held.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            // At the end, three bytes or fewer may be the beginning of a character.
            if done + invalid.len() == self.held.len() && is_beginning(invalid) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += invalid.len();
        }
        self.held.drain(..done);
        text
    }

    /// What was kept back at the end of a text.
    pub fn finish(&mut self) -> Option<char> {
        let held = !self.held.is_empty();
        self.held.clear();
        held.then_some(char::REPLACEMENT_CHARACTER)
    }
}

fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
