//! Marks that begin or end something within a line.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    Star,
    Underscore,
    Tilde,
    /// `[`, or `![` of an image.
    Bracket,
}

/// A run of the same mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub kind: MarkKind,
    /// The number of characters that are not resolved.
    pub count: usize,
    /// The number of characters of the run.
    pub length: usize,
    pub can_open: bool,
    pub can_close: bool,
}

impl Mark {
    pub(super) fn bracket(length: usize) -> Self {
        Self { kind: MarkKind::Bracket, count: length, length, can_open: true, can_close: false }
    }

    /// Creates the mark for a run of `*`, `_` or `~` between two characters, by the rules of CommonMark, but for names and paths,
    /// in which these characters mean themselves: nothing begins within a word of ASCII (`a*b*c`), and what stands beside a
    /// slash as it does in `src/*/x`, `src/_x_/y` and `src/**/y` is text.
    pub(super) fn between(c: char, length: usize, before: char, after: char) -> Self {
        let is_punctuation = |c: char| !c.is_alphanumeric() && !c.is_whitespace();
        let left = !after.is_whitespace()
            && (!is_punctuation(after) || before.is_whitespace() || is_punctuation(before));
        let right = !before.is_whitespace()
            && (!is_punctuation(before) || after.is_whitespace() || is_punctuation(after));
        let (kind, can_open, can_close) = match c {
            '_' => (
                MarkKind::Underscore,
                left && (!right || is_punctuation(before)),
                right && (!left || is_punctuation(after)),
            ),
            '~' => (MarkKind::Tilde, left && length == 2, right && length == 2),
            _ => (MarkKind::Star, left, right),
        };
        let is_within_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_in_word = is_within_name(before) && is_within_name(after);
        let is_single = length == 1;
        let can_open = can_open && !is_in_word && !(before == '/' && (is_single || !after.is_alphanumeric()));
        let is_of_path = (before == '/' || after == '/') && (is_single || before == after);
        // `**N**ame` ends within a word.
        let can_close = can_close && !is_of_path && !(is_in_word && is_single);
        Self { kind, count: length, length, can_open, can_close }
    }

    /// Returns true if `closer` ends what this mark begins.
    pub(super) fn matches(&self, closer: &Self) -> bool {
        let is_both = (self.can_open && self.can_close) || (closer.can_open && closer.can_close);
        let is_multiple = |length: usize| length.is_multiple_of(3);
        let is_split = is_both
            && is_multiple(self.length + closer.length)
            && !(is_multiple(self.length) && is_multiple(closer.length));
        self.kind == closer.kind && !is_split
    }
}
