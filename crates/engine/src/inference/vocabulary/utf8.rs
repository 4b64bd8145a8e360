//! Decodes UTF-8 that arrives in pieces.

/// Decodes bytes to whole characters, and holds back the beginning of a character.
#[derive(Default)]
pub struct Utf8Decoder {
    held: Vec<u8>,
}

impl Utf8Decoder {
    /// Returns the characters that `bytes` complete. Bytes that cannot be part of a character are replaced by U+FFFD.
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
            // The last bytes may be the beginning of a character.
            if done + invalid.len() == self.held.len() && is_beginning(invalid) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += invalid.len();
        }
        self.held.drain(..done);
        text
    }

    /// Ends the text. Returns U+FFFD if it ends within a character.
    pub fn finish(&mut self) -> Option<char> {
        let held = !self.held.is_empty();
        self.held.clear();
        held.then_some(char::REPLACEMENT_CHARACTER)
    }
}

fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
