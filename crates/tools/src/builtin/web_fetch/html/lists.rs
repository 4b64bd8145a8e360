//! The lists that are open at one place of a page.

/// The maximum depth that is shown.
const MAX_DEPTH: usize = 8;

#[derive(Default)]
pub(super) struct Lists {
    /// The number of the next item of each open list, or `None` where items have no numbers.
    open: Vec<Option<i64>>,
    /// The number of open lists that are too deep to be shown.
    deeper: usize,
    /// The mark of the item whose text comes next.
    item: Option<String>,
}

impl Lists {
    /// Returns the number of line ends before and after a list at this place.
    pub(super) fn spacing(&self) -> usize {
        if self.open.is_empty() { 2 } else { 1 }
    }

    pub(super) fn start(&mut self, first: Option<i64>) {
        if self.open.len() < MAX_DEPTH {
            self.open.push(first);
        } else {
            self.deeper += 1;
        }
    }

    pub(super) fn end(&mut self) {
        self.drop_item();
        match self.deeper.checked_sub(1) {
            Some(deeper) => self.deeper = deeper,
            None => drop(self.open.pop()),
        }
    }

    pub(super) fn start_item(&mut self) {
        self.item = Some(match self.open.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "* ".to_owned(),
        });
    }

    /// Forgets an item that had no text.
    pub(super) fn drop_item(&mut self) {
        self.item = None;
    }

    /// Returns true right after the start of an item.
    pub(super) fn is_at_item(&self) -> bool {
        self.item.is_some()
    }

    /// Returns what comes before the first text of a line: the mark of the item, or as much space.
    pub(super) fn take_prefix(&mut self) -> String {
        let depth = self.open.len();
        let mark = self.item.take();
        let mark = mark.as_deref().unwrap_or(if depth > 0 { "  " } else { "" });
        "  ".repeat(depth.saturating_sub(1)) + mark
    }
}
