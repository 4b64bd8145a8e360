//! Markdown on a terminal, while it arrives.
//!
//! Nothing that was written is taken back, so text is written once its look is certain:
//!
//! - The words of a line are written one by one, broken to the width of the terminal. The line ends where the source ends
//!   it, because models end lines on purpose.
//! - A mark that may begin something (`**`, a backtick, `[`) is kept until it is resolved, for at most 300 bytes.
//! - Lines of code are written one by one. They are not broken, so that they can be copied. Only their colours are new.
//! - A table is written when it is complete, because the last row can be the widest.
//!
//! The output does not depend on the pieces in which the text arrived. The address of a link is always shown. HTML is text, except `<br>`.

mod code_block;
mod code_colors;
mod flow;
mod inline;
mod line_start;
mod mark;
mod style;
mod table;
#[cfg(test)]
mod tests;
mod token;

use std::mem::take;

use super::{output::Palette, printable::Printable};
pub(super) use code_block::first_code_block;
use code_colors::CodeColors;
use flow::{Flow, Prefix};
use inline::Inline;
use line_start::{Container, LineKind, LineStart, line_start};
use style::Style;

/// The longest line, in bytes, of which all is read before it is known what it is. A longer one is text.
const MAX_WHOLE_LINE: usize = 4096;
/// A larger table is written in parts, in bytes.
const MAX_TABLE: usize = 64 << 10;

/// Turns Markdown into text for a terminal.
///
/// The text may come from a model: control characters are removed before it is read.
pub(super) struct Markdown {
    filter: Printable,
    flow: Flow,
    line: Line,
    block: Block,
    /// The blank lines before the next line are written as one.
    is_after_blank: bool,
    /// Something has been written.
    has_begun: bool,
    is_in_list: bool,
    /// The last line was indented code.
    is_in_code: bool,
}

/// The line of the source that is being read.
enum Line {
    /// It is not known yet what the line is.
    Start(String),
    Text(Inline),
    /// A line of code that is so long that it is written as it comes.
    LongCode,
}

/// The block that the line is in, if it goes over several lines.
enum Block {
    None,
    Code(Fence),
    Table(Table),
}

/// The rows of a table so far. The first two are a table only if the second says so.
struct Table {
    rows: Vec<String>,
    bytes: usize,
    /// The text before the first line and before the others.
    prefixes: (Prefix, Prefix),
}

/// The beginning of a block of code.
struct Fence {
    mark: char,
    length: usize,
    /// The number of quotes around it.
    quotes: usize,
    code: Option<CodeColors>,
}

impl Markdown {
    /// Creates a renderer for a terminal with `width` columns. 0 means that the width is unknown; then the terminal breaks
    /// the lines.
    pub(super) fn new(width: usize, palette: Palette) -> Self {
        Self {
            filter: Printable::new(),
            flow: Flow::new(width, palette),
            line: Line::Start(String::new()),
            block: Block::None,
            is_after_blank: false,
            has_begun: false,
            is_in_list: false,
            is_in_code: false,
        }
    }

    /// Tells the new width of the terminal. What has been written stays as it is.
    pub(super) fn set_width(&mut self, width: usize) {
        self.flow.set_width(width);
    }

    /// Adds a piece of the text and returns what is to be written now.
    pub(super) fn push(&mut self, text: &str) -> String {
        let text = self.filter.push(text);
        for piece in text.split_inclusive('\n') {
            let (piece, is_ended) = piece.strip_suffix('\n').map_or((piece, false), |piece| (piece, true));
            self.add(piece);
            if is_ended {
                self.end_line();
            }
        }
        self.flow.take()
    }

    /// Ends the text and returns the rest of it. Another text can follow.
    pub(super) fn finish(&mut self) -> String {
        let is_empty = matches!(&self.line, Line::Start(start) if start.is_empty());
        if !is_empty {
            self.end_line();
        }
        self.end_block();
        self.flow.interrupt();
        let rest = self.flow.take();
        *self = Self::new(self.flow.width(), self.flow.palette());
        rest
    }

    /// Returns what ends the line on the terminal, so that something else can be written there. The text goes on below it.
    pub(super) fn interrupt(&mut self) -> String {
        self.flow.interrupt();
        self.flow.take()
    }

    fn add(&mut self, piece: &str) {
        match &mut self.line {
            Line::Text(inline) => inline.push(piece, &mut self.flow),
            Line::LongCode => self.flow.raw(piece),
            Line::Start(start) => {
                start.push_str(piece);
                self.begin_line();
            }
        }
    }

    /// Begins the line if it is known what it is.
    fn begin_line(&mut self) {
        let may_be_code = self.may_be_code();
        let Line::Start(line) = &mut self.line else { return };
        let is_long = line.len() > MAX_WHOLE_LINE;
        let is_code = matches!(self.block, Block::Code(_));
        let start = if is_code { None } else { line_start(line, is_long, may_be_code) };
        let is_code = is_code || start.as_ref().is_some_and(|start| start.kind == LineKind::IndentedCode);
        match start {
            _ if is_code && is_long => {
                let code = take(line);
                self.line = Line::LongCode;
                if let Block::Code(fence) = &mut self.block {
                    fence.code = None;
                }
                self.flow.raw(&code);
            }
            Some(start) if !is_code => {
                let text = line[start.text_at..].to_owned();
                self.end_block();
                self.begin_text(&text, &start);
            }
            _ => {}
        }
    }

    /// Says if an indented line is code here.
    fn may_be_code(&self) -> bool {
        (self.is_after_blank || self.is_in_code) && !self.is_in_list
    }

    /// Begins a line of text, whose beginning has been read.
    fn begin_text(&mut self, text: &str, start: &LineStart) {
        self.write_blank();
        self.is_in_code = false;
        let is_item = start.containers.iter().any(|part| !matches!(part, Container::Quote(_)));
        self.is_in_list = is_item || (self.is_in_list && start.indent > 0);
        let (first, rest) = prefixes(start, self.flow.palette());
        self.flow.begin(first, rest);
        let style = if start.kind == LineKind::Heading { Style::BOLD } else { Style::PLAIN };
        let mut inline = Inline::new(style);
        inline.push(text, &mut self.flow);
        self.line = Line::Text(inline);
    }

    fn end_line(&mut self) {
        match std::mem::replace(&mut self.line, Line::Start(String::new())) {
            Line::Text(mut inline) => {
                inline.finish(&mut self.flow);
                self.flow.end_line();
            }
            Line::LongCode => self.flow.raw("\n"),
            Line::Start(line) => self.read_line(&line),
        }
    }

    /// Reads a line of which nothing has been written.
    fn read_line(&mut self, line: &str) {
        if let Block::Code(fence) = &mut self.block {
            let (quotes, code) = without_quotes(line, fence.quotes);
            if quotes == fence.quotes {
                let is_end = is_end_of(fence, code);
                match fence.code.as_mut().filter(|_| !is_end).map(|colors| colors.line(code)) {
                    Some(colored) => self.write_code(quotes, &colored, false),
                    None => self.write_code(quotes, code, is_end),
                }
                if is_end {
                    self.block = Block::None;
                }
                return;
            }
            self.block = Block::None;
        }
        let start = line_start(line, true, self.may_be_code()).expect("all of the line is known");
        if start.kind != LineKind::TableRow {
            self.end_block();
        }
        match start.kind {
            LineKind::Blank if start.containers.is_empty() => self.is_after_blank = true,
            LineKind::TableRow => self.add_row(&line[start.text_at..], &start),
            LineKind::Fence(mark, length) => {
                let quotes =
                    start.containers.iter().filter(|part| matches!(part, Container::Quote(_))).count();
                self.write_blank();
                self.write_code(quotes, without_quotes(line, quotes).1, true);
                let tag = line[start.text_at..].trim_start_matches(mark);
                let code = CodeColors::new(tag, self.flow.palette());
                self.block = Block::Code(Fence { mark, length, quotes, code });
            }
            LineKind::Rule => self.write_rule(&start),
            LineKind::IndentedCode => {
                self.write_blank();
                self.flow.whole_line(line);
                self.is_in_code = true;
            }
            LineKind::Blank | LineKind::Text | LineKind::Heading => {
                self.begin_text(&line[start.text_at..], &start);
                self.end_line();
            }
        }
    }

    fn write_rule(&mut self, start: &LineStart) {
        self.write_blank();
        let (first, _) = prefixes(start, self.flow.palette());
        let columns = if self.flow.width() == 0 { 40 } else { self.flow.width() };
        let rule = "─".repeat(columns.saturating_sub(first.width).max(3));
        self.flow.whole_line(&format!("{}{}", first.text, self.flow.palette().dim(&rule)));
    }

    /// Writes a line of code, or the line that begins or ends it.
    fn write_code(&mut self, quotes: usize, code: &str, is_fence: bool) {
        let palette = self.flow.palette();
        let mut line = String::new();
        for _ in 0..quotes {
            line.push_str(&palette.dim("│ "));
        }
        line.push_str(&if is_fence { palette.dim(code) } else { code.to_owned() });
        self.flow.whole_line(&line);
        self.has_begun = true;
    }

    /// Writes the blank line that stands before the next line.
    fn write_blank(&mut self) {
        if take(&mut self.is_after_blank) && self.has_begun {
            self.flow.whole_line("");
        }
        self.has_begun = true;
    }

    fn add_row(&mut self, row: &str, start: &LineStart) {
        if !matches!(self.block, Block::Table(_)) {
            self.write_blank();
            let prefixes = prefixes(start, self.flow.palette());
            self.block = Block::Table(Table { rows: Vec::new(), bytes: 0, prefixes });
        }
        let Block::Table(table) = &mut self.block else { return };
        table.rows.push(row.to_owned());
        table.bytes += row.len();
        let is_full = table.bytes > MAX_TABLE;
        if table.rows.len() == 2 && !table::is_table(&table.rows) {
            // The first row was text. The second can be the first row of a table.
            let (second, prefixes) = (table.rows.pop(), prefixes(start, self.flow.palette()));
            self.end_block();
            let rows = second.into_iter().collect();
            self.block = Block::Table(Table { rows, bytes: row.len(), prefixes });
        } else if is_full {
            self.end_block();
        }
    }

    /// Writes the table that has ended.
    fn end_block(&mut self) {
        if !matches!(self.block, Block::Table(_)) {
            return;
        }
        let Block::Table(Table { rows, prefixes: (first, rest), .. }) =
            std::mem::replace(&mut self.block, Block::None)
        else {
            return;
        };
        if table::is_table(&rows) {
            let width = self.flow.width();
            let width = if width == 0 { 0 } else { width.saturating_sub(first.width).max(1) };
            let lines = table::format_table(&rows, width, self.flow.palette());
            for (number, line) in lines.iter().enumerate() {
                let prefix = if number == 0 { &first } else { &rest };
                self.flow.whole_line(&format!("{}{line}", prefix.text));
            }
            return;
        }
        for row in rows {
            self.flow.begin(first.clone(), rest.clone());
            let mut inline = Inline::new(Style::PLAIN);
            inline.push(&row, &mut self.flow);
            inline.finish(&mut self.flow);
            self.flow.end_line();
        }
    }
}

/// Returns what stands before the first line and before those into which it is broken.
fn prefixes(start: &LineStart, palette: Palette) -> (Prefix, Prefix) {
    let (mut first, mut rest) = (Prefix::default(), Prefix::default());
    let mut add = |shown: &str, repeated: &str, width: usize| {
        first.text.push_str(shown);
        rest.text.push_str(repeated);
        first.width += width;
        rest.width += width;
    };
    let spaces = |count: usize| " ".repeat(count);
    for container in &start.containers {
        let (Container::Quote(indent) | Container::Bullet(indent) | Container::Number(indent, _)) = container;
        add(&spaces(*indent), &spaces(*indent), *indent);
        match container {
            Container::Quote(_) => add(&palette.dim("│ "), &palette.dim("│ "), 2),
            Container::Bullet(_) => add("• ", &spaces(2), 2),
            Container::Number(_, number) => {
                add(&format!("{number} "), &spaces(number.len() + 1), number.len() + 1);
            }
        }
    }
    add(&spaces(start.indent), &spaces(start.indent), start.indent);
    (first, rest)
}

/// Removes at most `count` quote marks from the beginning of a line. Returns how many there were.
fn without_quotes(line: &str, count: usize) -> (usize, &str) {
    let mut rest = line;
    for found in 0..count {
        let Some(after) = rest.trim_start().strip_prefix('>') else { return (found, rest) };
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    (count, rest)
}

fn is_end_of(fence: &Fence, line: &str) -> bool {
    let line = line.trim();
    line.len() >= fence.length && line.chars().all(|c| c == fence.mark)
}
