//! The colours of a block of code.

use kontekst_tools::{CodePart, Highlighter};

use crate::cli::output::Palette;

/// The colours of one block, whose lines arrive one by one.
pub(super) struct CodeColors {
    highlighter: Option<Highlighter>,
    palette: Palette,
}

impl CodeColors {
    /// Returns `None` if there are no colours, or if what stands behind the fence names no language that is known.
    pub(super) fn new(tag: &str, palette: Palette) -> Option<Self> {
        let name = tag.trim().split(|c: char| c.is_whitespace() || "{,:".contains(c)).next()?;
        let known = palette.is_enabled().then(|| Highlighter::new(&name.to_ascii_lowercase()))?;
        known.map(|highlighter| Self { highlighter: Some(highlighter), palette })
    }

    /// Returns a line with its colours. Each ends with a reset on the same line.
    pub(super) fn line(&mut self, line: &str) -> String {
        let Some(parts) = self.highlighter.as_mut().and_then(|highlighter| highlighter.line(line)) else {
            self.highlighter = None;
            return line.to_owned();
        };
        let (mut colored, mut at) = (String::with_capacity(2 * line.len()), 0);
        for (range, part) in parts {
            let code = match part {
                CodePart::Keyword => "35",
                CodePart::String => "32",
                CodePart::Comment => "2",
                CodePart::Number => "33",
                CodePart::Function => "36",
            };
            colored.push_str(&line[at..range.start]);
            colored.push_str(&self.palette.paint(code, &line[range.clone()]));
            at = range.end;
        }
        colored.push_str(&line[at..]);
        colored
    }
}
