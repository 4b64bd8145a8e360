//! The line in which one sees what one types while an answer is printed.

use unicode_width::UnicodeWidthStr as _;

use crate::cli::{output::Palette, table::cut_start, terminal::PROMPT};

/// The text that was typed, and the row of the answer above it.
#[derive(Default)]
pub(super) struct TypedLine {
    text: String,
    row: Option<String>,
}

impl TypedLine {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Sets what was typed, in one line that is printable.
    pub(super) fn set_text(&mut self, text: String) {
        self.text = text;
    }

    /// Notes what stands in the row above, where the output goes on.
    pub(super) fn set_row(&mut self, row: &str) {
        self.row = Some(row.to_owned());
    }

    /// Returns the row above, to which the cursor is about to go back.
    pub(super) fn take_row(&mut self) -> Option<String> {
        self.row.take()
    }

    /// Returns what draws the line, with the end of the text if there is no room for all of it. The cursor has the last column.
    pub(super) fn drawn(&self, columns: usize, palette: Palette) -> String {
        let room = columns.saturating_sub(PROMPT.width() + 1);
        let text = if columns == 0 { (&*self.text).into() } else { cut_start(&self.text, room) };
        format!("\r\x1b[K{}{text}", palette.bold(PROMPT))
    }
}
