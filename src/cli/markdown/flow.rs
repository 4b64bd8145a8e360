//! Breaks styled text into lines that fit the terminal, while it arrives.

use std::mem::take;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::cli::output::Palette;

use super::style::Style;

/// The longest word that is kept until it ends, in bytes. A longer one is written in parts.
const MAX_WORD: usize = 512;
/// The columns that the text of a line gets at least. Indentation that would leave less is dropped on the lines that
/// follow the first.
const MIN_TEXT_WIDTH: usize = 12;

/// The indentation and marks before the text of a line. It contains no control characters but attributes of the palette.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefix {
    pub text: String,
    /// The columns that it takes.
    pub width: usize,
}

/// Writes words into lines.
///
/// A word is written when the space behind it arrives, because only then it is known to fit. Between wide characters, as
/// Chinese and Japanese have them, a line can end anywhere.
pub(super) struct Flow {
    palette: Palette,
    /// The columns of the terminal, or 0 if they are unknown: then the terminal breaks the lines.
    width: usize,
    /// A word that is wider than a line is broken here, and not by the terminal.
    breaks_words: bool,
    out: String,
    /// Stands before the text of the next line.
    prefix: Prefix,
    /// Stands before the text of the lines after that one.
    rest_prefix: Prefix,
    /// The columns that the last line has so far. `None` at its beginning.
    column: Option<usize>,
    spaces: usize,
    word: Vec<(Style, String)>,
    word_bytes: usize,
    /// The last character of the word, if there is a word.
    last: Option<char>,
}

impl Flow {
    pub(super) fn new(width: usize, palette: Palette) -> Self {
        Self {
            palette,
            width,
            breaks_words: false,
            out: String::new(),
            prefix: Prefix::default(),
            rest_prefix: Prefix::default(),
            column: None,
            spaces: 0,
            word: Vec::new(),
            word_bytes: 0,
            last: None,
        }
    }

    /// Creates a flow whose lines are never wider than `width`.
    pub(super) fn narrow(width: usize, palette: Palette) -> Self {
        Self { breaks_words: true, ..Self::new(width, palette) }
    }

    pub(super) fn palette(&self) -> Palette {
        self.palette
    }

    /// Returns the columns of a line, or 0 if they are unknown.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn set_width(&mut self, width: usize) {
        self.width = width;
    }

    /// Returns what is ready to be written.
    pub(super) fn take(&mut self) -> String {
        take(&mut self.out)
    }

    /// Begins a line of the text. `rest` stands before the lines into which it is broken.
    pub(super) fn begin(&mut self, first: Prefix, rest: Prefix) {
        self.prefix = first;
        let is_too_wide = self.width > 0 && rest.width + MIN_TEXT_WIDTH > self.width;
        self.rest_prefix = if is_too_wide { Prefix::default() } else { rest };
    }

    /// Adds text to the line.
    pub(super) fn text(&mut self, style: Style, text: &str) {
        for c in text.chars() {
            if c == ' ' || c == '\t' {
                self.write_word();
                self.spaces += 1;
                continue;
            }
            if self.word_bytes > MAX_WORD || self.may_break_before(c) {
                self.write_word();
            }
            self.word_bytes += c.len_utf8();
            match self.word.last_mut() {
                Some((last, part)) if *last == style => part.push(c),
                _ => self.word.push((style, c.to_string())),
            }
            self.last = Some(c);
        }
    }

    /// Ends the line. A line without text keeps its prefix.
    pub(super) fn end_line(&mut self) {
        self.write_word();
        if self.column.is_none() {
            let prefix = take(&mut self.prefix);
            self.out.push_str(prefix.text.trim_end());
        }
        self.new_line();
        self.prefix = Prefix::default();
        self.rest_prefix = Prefix::default();
    }

    /// Ends the line in which something else is to be written on the terminal. The text goes on below it.
    pub(super) fn interrupt(&mut self) {
        self.write_word();
        if self.column.is_some() {
            self.new_line();
        }
    }

    /// Breaks the line where the text says so.
    pub(super) fn break_line(&mut self) {
        self.write_word();
        self.new_line();
    }

    /// Writes a whole line as it is. It has to be printable.
    pub(super) fn whole_line(&mut self, line: &str) {
        self.interrupt();
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Writes text as it is, without looking at the width. It has to be printable.
    pub(super) fn raw(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.push_str(text);
            self.column = if text.ends_with('\n') { None } else { Some(1) };
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.column = None;
        self.spaces = 0;
        self.prefix = self.rest_prefix.clone();
    }

    /// Says if a line can end between the last character of the word and `c`.
    fn may_break_before(&self, c: char) -> bool {
        let Some(last) = self.last else { return false };
        let joins = |c: char| c.width().unwrap_or(0) == 0 || ('\u{1f3fb}'..='\u{1f3ff}').contains(&c);
        let is_wide = |c: char| c.width() == Some(2);
        let closes = |c: char| "、。，．：；？！）」』】〉》・ー".contains(c) || c.is_ascii_punctuation();
        let opens = |c: char| "（「『【〈《".contains(c) || c.is_ascii_punctuation();
        (is_wide(last) || is_wide(c)) && !joins(c) && !closes(c) && last != '\u{200d}' && !opens(last)
    }

    /// Writes the word that has ended, on the next line if it does not fit.
    fn write_word(&mut self) {
        let word = take(&mut self.word);
        (self.word_bytes, self.last) = (0, None);
        if word.is_empty() {
            return;
        }
        let text: String = word.iter().map(|(_, part)| &**part).collect();
        let word_width = text.width();
        if let Some(column) = self.column {
            if self.width > 0 && column + self.spaces + word_width > self.width {
                self.new_line();
            } else {
                self.out.extend(std::iter::repeat_n(' ', self.spaces));
                self.column = Some(column + self.spaces);
            }
        }
        self.spaces = 0;
        let begin = self.column.unwrap_or_else(|| self.write_prefix());
        if self.breaks_words && self.width > 0 && begin + word_width > self.width {
            return self.write_in_parts(&word, begin);
        }
        for (style, part) in &word {
            style.paint(self.palette, part, &mut self.out);
        }
        let end = begin + word_width;
        // The terminal has broken the word.
        let is_broken = self.width > 0 && end > self.width;
        self.column = Some(if is_broken { (end - 1) % self.width + 1 } else { end });
    }

    fn write_prefix(&mut self) -> usize {
        let prefix = take(&mut self.prefix);
        self.out.push_str(&prefix.text);
        prefix.width
    }

    fn write_in_parts(&mut self, word: &[(Style, String)], mut begin: usize) {
        let mut column = begin;
        for (style, part) in word {
            let mut rest = &**part;
            while !rest.is_empty() {
                let mut end = 0;
                for (at, c) in rest.char_indices() {
                    let c_width = c.width().unwrap_or(0);
                    if column + c_width > self.width && (column > begin || at > 0) {
                        break;
                    }
                    column += c_width;
                    end = at + c.len_utf8();
                }
                style.paint(self.palette, &rest[..end], &mut self.out);
                rest = &rest[end..];
                if !rest.is_empty() {
                    self.new_line();
                    begin = self.write_prefix();
                    column = begin;
                }
            }
        }
        self.column = Some(column);
    }
}
