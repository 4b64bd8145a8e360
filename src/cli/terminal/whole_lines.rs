//! Text of which only whole lines are shown at times.

/// The beginning of a line that is not shown yet.
#[derive(Default)]
pub(in crate::cli) struct WholeLines {
    rest: String,
}

impl WholeLines {
    /// Adds text. Returns what is to be shown now: all of it, or only lines that are complete.
    pub(in crate::cli) fn push(&mut self, text: &str, only_whole: bool) -> String {
        self.rest.push_str(text);
        let end = if only_whole { self.rest.rfind('\n').map_or(0, |at| at + 1) } else { self.rest.len() };
        self.rest.drain(..end).collect()
    }

    /// Returns the beginning of a line that was not shown.
    pub(in crate::cli) fn take(&mut self) -> String {
        std::mem::take(&mut self.rest)
    }
}
