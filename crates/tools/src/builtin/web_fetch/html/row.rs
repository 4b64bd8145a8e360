//! The row of a table that is being written.

/// The maximum number of cells without text that are shown.
const MAX_EMPTY_CELLS: usize = 32;

#[derive(Default)]
pub(super) struct Row {
    has_cell: bool,
    has_text: bool,
    in_cell: bool,
    /// True until the cell has a text.
    cell_is_empty: bool,
    /// The number of cells that began since the last text, without the first cell of the row.
    separators: usize,
    /// True until a cell with several lines was written.
    is_one_line: bool,
}

impl Row {
    pub(super) fn start() -> Self {
        Self { is_one_line: true, ..Self::default() }
    }

    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Returns true if the row has a text, and all of it on one line.
    pub(super) fn has_one_line(&self) -> bool {
        self.has_text && self.is_one_line
    }

    pub(super) fn is_in_cell(&self) -> bool {
        self.in_cell
    }

    /// Returns true right after the start of a cell.
    pub(super) fn is_at_cell(&self) -> bool {
        self.in_cell && self.cell_is_empty
    }

    pub(super) fn newlines_before_cell(&self) -> usize {
        usize::from(!self.is_one_line)
    }

    pub(super) fn start_cell(&mut self) {
        self.separators += usize::from(self.has_cell);
        self.has_cell = true;
        self.in_cell = true;
        self.cell_is_empty = true;
    }

    pub(super) fn end_cell(&mut self) {
        self.in_cell = false;
    }

    /// Returns the number of separators before the next text, if it continues the line of the row.
    pub(super) fn take_separators(&mut self) -> Option<usize> {
        let separators = std::mem::take(&mut self.separators).min(MAX_EMPTY_CELLS);
        (separators > 0 && self.is_one_line).then_some(separators)
    }

    /// Notes that the next text begins a line.
    pub(super) fn begin_line(&mut self) {
        self.is_one_line &= !self.has_text;
    }

    pub(super) fn add_text(&mut self) {
        self.has_text = true;
        self.cell_is_empty = false;
    }
}
