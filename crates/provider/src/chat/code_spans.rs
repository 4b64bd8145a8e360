//! Finds quoted code in Markdown, while it streams.

/// Tracks which parts of a Markdown text are quoted as code.
#[derive(Default)]
pub(in crate::chat) struct CodeSpans {
    /// The number of backticks directly before the current byte.
    ticks: usize,
    /// The line has something other than white space before these backticks.
    midline: bool,
    fenced: bool,
    /// The number of backticks that opened the code span in this line, or 0.
    inline: usize,
}

impl CodeSpans {
    /// Ends a row of backticks if `byte` is not one. Must be called for each byte before [`CodeSpans::is_code`].
    pub(in crate::chat) fn end_ticks(&mut self, byte: u8) {
        if byte == b'`' || self.ticks == 0 {
            return;
        }
        if self.ticks >= 3 && !self.midline {
            self.fenced = !self.fenced;
        } else if !self.fenced && self.inline == 0 {
            self.inline = self.ticks;
        } else if self.inline == self.ticks {
            self.inline = 0;
        }
        self.ticks = 0;
        self.midline = true;
    }

    /// Adds a byte of text.
    pub(in crate::chat) fn push(&mut self, byte: u8) {
        match byte {
            b'`' => self.ticks += 1,
            b'\n' => (self.midline, self.inline) = (false, 0),
            byte if !byte.is_ascii_whitespace() => self.midline = true,
            _ => {}
        }
    }

    /// Returns true if only white space has come since the last line break.
    pub(in crate::chat) fn at_line_start(&self) -> bool {
        !self.midline && self.ticks == 0
    }

    pub(in crate::chat) fn is_code(&self) -> bool {
        self.fenced || self.inline > 0
    }
}
