//! Writes the visible text of a page: one line for each block, with marks like those of Markdown.

use std::fmt::Write;

use super::{elements::Tag, lists::Lists, row::Row};

/// The maximum depth of quotes that is shown.
const MAX_DEPTH: usize = 8;
/// The maximum number of marks that are open at once.
const MAX_MARKS: usize = 16;
/// Elements that begin and end on lines of their own.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "body",
    "button",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "html",
    "legend",
    "main",
    "menu",
    "nav",
    "option",
    "search",
    "section",
    "select",
    "summary",
    "tbody",
    "tfoot",
    "thead",
];

/// Blocks with an empty line before and after them.
const SPACED_BLOCKS: &[&str] =
    &["p", "h1", "h2", "h3", "h4", "h5", "h6", "dl", "pre", "blockquote", "table", "xmp", "plaintext"];

/// The text of a page so far.
pub(super) struct Writer {
    out: String,
    /// Nothing is written after this many bytes.
    limit: usize,
    /// The number of line ends before the next text.
    newlines: usize,
    /// True if there was white space after the last text.
    has_space: bool,
    /// The number of `pre` elements that are open.
    preformatted: usize,
    quotes: usize,
    lists: Lists,
    /// The number of `#` before the next text.
    heading: Option<usize>,
    marks: Vec<Mark>,
    link: Option<Link>,
    /// The addresses of the links that were written, in order.
    links: Vec<String>,
    link_bytes: usize,
    row: Row,
}

/// A mark on both sides of a text, such as `**`.
struct Mark {
    text: &'static str,
    is_written: bool,
}

struct Link {
    href: String,
    is_written: bool,
}

impl Writer {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            out: String::new(),
            limit,
            newlines: 0,
            has_space: false,
            preformatted: 0,
            quotes: 0,
            lists: Lists::default(),
            heading: None,
            marks: Vec::new(),
            link: None,
            links: Vec::new(),
            link_bytes: 0,
            row: Row::default(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= self.limit
    }

    /// Returns the text, with the addresses of its links at the end.
    pub(super) fn finish(mut self) -> String {
        self.end_link();
        self.end_marks();
        let mut text = self.out;
        text.truncate(text.trim_end().len());
        for (number, href) in (1..).zip(&self.links) {
            let separator = if number == 1 { "\n\n" } else { "\n" };
            let _ = write!(text, "{separator}[{number}]: {href}");
        }
        text
    }

    pub(super) fn start(&mut self, tag: Tag) {
        match &*tag.name {
            "a" => self.start_link(tag.href),
            "img" => {
                if let Some(alt) = tag.alt.filter(|alt| !alt.is_empty()) {
                    self.text(&format!("[{alt}]"));
                }
            }
            "br" => self.line_break(),
            "hr" => {
                self.boundary(1);
                self.text("---");
                self.boundary(1);
            }
            "ul" | "menu" => self.start_list(None),
            "ol" => self.start_list(Some(tag.start.unwrap_or(1))),
            "li" => self.start_item(),
            "table" => {
                self.row = Row::default();
                self.boundary(2);
            }
            "tr" => self.start_row(),
            "td" | "th" => self.start_cell(),
            name => self.start_plain(name),
        }
    }

    fn start_plain(&mut self, name: &str) {
        self.block_boundary(name);
        match name {
            "blockquote" => self.quotes += 1,
            "pre" | "xmp" | "plaintext" => self.preformatted += 1,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading = name[1..].parse().ok(),
            _ => {
                if let Some(text) = mark_of(name)
                    && self.marks.len() < MAX_MARKS
                {
                    self.marks.push(Mark { text, is_written: false });
                }
            }
        }
    }

    pub(super) fn end(&mut self, name: &str) {
        match name {
            "a" => self.end_link(),
            "ul" | "ol" | "menu" => self.end_list(),
            "li" => self.boundary(1),
            "br" => self.line_break(),
            "tr" | "table" => {
                self.row = Row::default();
                self.block_boundary(name);
                self.boundary(1);
            }
            "td" | "th" => {
                self.end_marks();
                self.row.end_cell();
                self.has_space = true;
            }
            _ => self.end_plain(name),
        }
    }

    fn end_plain(&mut self, name: &str) {
        self.block_boundary(name);
        match name {
            "blockquote" => self.quotes = self.quotes.saturating_sub(1),
            "pre" | "xmp" | "plaintext" => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.out.truncate(self.out.trim_end_matches('\n').len());
            }
            _ => {
                let Some(text) = mark_of(name) else { return };
                let Some(at) = self.marks.iter().rposition(|mark| mark.text == text) else { return };
                if self.marks.remove(at).is_written {
                    self.out.push_str(text);
                }
            }
        }
    }

    /// Adds text of the page.
    pub(super) fn text(&mut self, text: &str) {
        if self.preformatted > 0 {
            return self.preformatted_text(text);
        }
        for (number, word) in text.split(is_space).enumerate() {
            self.has_space |= number > 0;
            if !word.is_empty() {
                self.begin();
                self.push(word);
            }
            if self.is_full() {
                return;
            }
        }
    }

    fn preformatted_text(&mut self, text: &str) {
        // The line end right after the start tag is not part of the text.
        let is_first = self.newlines > 0 || self.out.is_empty();
        let text = if is_first { text.strip_prefix('\n').unwrap_or(text) } else { text };
        if !text.is_empty() {
            self.begin();
            self.push(text);
        }
    }

    /// Writes what comes before a text: line ends or a space, and the marks that open here.
    fn begin(&mut self) {
        let cell = self.row.take_separators();
        if (self.newlines > 0 || self.out.is_empty()) && !(cell.is_some() && self.row.has_text()) {
            self.row.begin_line();
            self.begin_line();
        } else if self.has_space && cell.is_none() {
            self.push(" ");
        }
        if let Some(separators) = cell {
            self.push(&" | ".repeat(separators));
        }
        self.newlines = 0;
        self.has_space = false;
        self.row.add_text();
        if let Some(link) = self.link.as_mut().filter(|link| !link.is_written) {
            link.is_written = true;
            self.out.push('[');
        }
        for mark in self.marks.iter_mut().filter(|mark| !mark.is_written) {
            mark.is_written = true;
            self.out.push_str(mark.text);
        }
    }

    fn begin_line(&mut self) {
        if !self.out.is_empty() {
            self.push(&"\n".repeat(self.newlines.min(2)));
        }
        self.push(&"> ".repeat(self.quotes.min(MAX_DEPTH)));
        let prefix = self.lists.take_prefix();
        self.push(&prefix);
        if let Some(level) = self.heading.take() {
            self.push(&format!("{} ", "#".repeat(level)));
        }
    }

    /// Appends text as it is, up to the limit.
    fn push(&mut self, text: &str) {
        let room = self.limit.saturating_sub(self.out.len());
        self.out.push_str(&text[..text.floor_char_boundary(room.min(text.len()))]);
        if text.len() > room {
            // The rest of the limit may be too small for one character. It must be reached all the same.
            self.out.extend(std::iter::repeat_n(' ', self.limit.saturating_sub(self.out.len())));
        }
    }

    /// Begins a new line, after `newlines` line ends.
    fn boundary(&mut self, newlines: usize) {
        self.end_marks();
        self.heading = None;
        self.has_space = false;
        let at_start = self.lists.is_at_item() || self.row.is_at_cell();
        if !at_start && !self.out.is_empty() {
            self.newlines = self.newlines.max(newlines);
        }
    }

    fn block_boundary(&mut self, name: &str) {
        if SPACED_BLOCKS.contains(&name) {
            self.boundary(2);
        } else if BLOCKS.contains(&name) {
            self.boundary(1);
        }
    }

    fn line_break(&mut self) {
        if self.preformatted > 0 {
            self.begin();
            self.push("\n");
        } else if self.row.is_in_cell() {
            self.has_space = true;
        } else if !self.out.is_empty() {
            self.newlines = (self.newlines + 1).min(2);
        }
    }

    fn start_link(&mut self, href: Option<String>) {
        self.end_link();
        let is_useful = |href: &String| {
            let scheme = href.split(':').next().unwrap_or_default().to_ascii_lowercase();
            !href.is_empty() && !href.starts_with('#') && scheme != "javascript" && scheme != "data"
        };
        self.link = href.filter(is_useful).map(|href| Link { href, is_written: false });
    }

    fn end_link(&mut self) {
        let Some(Link { href, is_written: true }) = self.link.take() else { return };
        self.link_bytes += href.len() + std::mem::size_of::<String>();
        if self.link_bytes > self.limit {
            self.push("]");
            return;
        }
        self.links.push(href);
        let number = self.links.len();
        self.push(&format!("][{number}]"));
    }

    fn end_marks(&mut self) {
        while let Some(mark) = self.marks.pop() {
            if mark.is_written {
                self.out.push_str(mark.text);
            }
        }
    }

    fn start_list(&mut self, first: Option<i64>) {
        self.lists.drop_item();
        self.boundary(self.lists.spacing());
        self.lists.start(first);
    }

    fn end_list(&mut self) {
        self.lists.end();
        self.boundary(self.lists.spacing());
    }

    fn start_item(&mut self) {
        self.lists.drop_item();
        self.boundary(1);
        self.lists.start_item();
    }

    fn start_row(&mut self) {
        let was_one_line = self.row.has_one_line();
        self.row = Row::start();
        self.boundary(1);
        if was_one_line {
            self.newlines = self.newlines.min(1);
        }
    }

    fn start_cell(&mut self) {
        self.boundary(self.row.newlines_before_cell());
        self.row.start_cell();
    }
}

/// Returns the mark that stands on both sides of the element's text.
fn mark_of(name: &str) -> Option<&'static str> {
    match name {
        "b" | "strong" => Some("**"),
        "i" | "em" => Some("*"),
        "code" | "kbd" | "samp" => Some("`"),
        _ => None,
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}
