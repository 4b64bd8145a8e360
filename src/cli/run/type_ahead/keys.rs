//! Reads keys from the bytes that a terminal sends.

/// A key that changes a text to whose end one types. All other keys do nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A character, or a line feed.
    Text(char),
    Enter,
    Backspace,
    DeleteWord,
    /// Deletes the whole prompt.
    DeleteLine,
    Interrupt,
}

/// The longest sequence whose meaning is looked at. A longer one is no key that is known here.
const MAX_SEQUENCE: usize = 8;

/// The keys that a terminal sends, in pieces that end anywhere.
#[derive(Default)]
pub(super) struct Keys {
    state: State,
    /// The text until a mark of the terminal was pasted.
    in_paste: bool,
    /// The character before was a carriage return of a pasted text.
    after_return: bool,
    /// The first bytes of a character.
    incomplete: Vec<u8>,
}

#[derive(Default)]
enum State {
    #[default]
    Text,
    /// After ESC, which is also what Alt sends before a key.
    Escape,
    /// After ESC and `[`, with what followed.
    Csi(String),
    /// After ESC and `O`.
    Ss3,
}

impl Keys {
    /// Reads the next bytes.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.incomplete.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.incomplete);
        let mut keys = Vec::new();
        let mut read = 0;
        for chunk in bytes.utf8_chunks() {
            keys.extend(chunk.valid().chars().filter_map(|c| self.key(c)));
            read += chunk.valid().len();
            let is_beginning =
                read + chunk.invalid().len() == bytes.len() && begins_character(chunk.invalid());
            if !chunk.invalid().is_empty() && !is_beginning {
                read += chunk.invalid().len();
                keys.extend(self.key(char::REPLACEMENT_CHARACTER));
            }
        }
        self.incomplete = bytes[read..].to_vec();
        keys
    }

    /// Returns true if the rest of a pasted text, of a sequence or of a character has not come. After ESC alone nothing
    /// more needs to come.
    pub(super) fn is_incomplete(&self) -> bool {
        self.in_paste || !self.incomplete.is_empty() || matches!(self.state, State::Csi(_) | State::Ss3)
    }

    fn key(&mut self, c: char) -> Option<Key> {
        match std::mem::take(&mut self.state) {
            State::Text if c == '\x1b' => self.state = State::Escape,
            State::Text if self.in_paste => return self.pasted(c),
            State::Text => return typed(c),
            State::Escape => match c {
                '\x1b' => self.state = State::Escape,
                '[' => self.state = State::Csi(String::new()),
                'O' => self.state = State::Ss3,
                '\r' | '\n' => return Some(Key::Text('\n')),
                '\x7f' | '\x08' => return Some(Key::DeleteWord),
                _ => {}
            },
            State::Csi(sequence) if ('@'..='~').contains(&c) => match (sequence.as_str(), c) {
                ("200", '~') => self.in_paste = true,
                ("201", '~') => (self.in_paste, self.after_return) = (false, false),
                _ => {}
            },
            State::Csi(mut sequence) => {
                if sequence.len() < MAX_SEQUENCE {
                    sequence.push(c);
                }
                self.state = State::Csi(sequence);
            }
            State::Ss3 => {}
        }
        None
    }

    /// Reads a character of a pasted text. Terminals send its line ends in every form there is.
    fn pasted(&mut self, c: char) -> Option<Key> {
        let after_return = std::mem::replace(&mut self.after_return, c == '\r');
        match c {
            '\n' if after_return => None,
            '\r' | '\n' => Some(Key::Text('\n')),
            '\t' => Some(Key::Text('\t')),
            c if c.is_control() => None,
            c => Some(Key::Text(c)),
        }
    }
}

fn typed(c: char) -> Option<Key> {
    match c {
        '\r' => Some(Key::Enter),
        '\n' => Some(Key::Text('\n')),
        '\x7f' | '\x08' => Some(Key::Backspace),
        '\x03' => Some(Key::Interrupt),
        '\x15' => Some(Key::DeleteLine),
        '\x17' => Some(Key::DeleteWord),
        c if c.is_control() => None,
        c => Some(Key::Text(c)),
    }
}

/// Returns true if more bytes can make a character of these.
fn begins_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
