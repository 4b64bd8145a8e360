//! Writes the answer to stdout.

use std::io::{self, Write as _};

use crate::cli::output::Screen;

use super::{RunRenderer, WIDTH_OF_PIPE};

impl RunRenderer {
    /// Ends a line that was begun on stdout, so that the next output starts on its own line.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if let Some(markdown) = &mut self.markdown {
            let text = markdown.interrupt();
            self.write_to_line(&text)?;
        }
        self.release_line()?;
        if self.in_middle_of_line { self.write_text("\n") } else { Ok(()) }
    }

    /// Prints the beginning of a line that was kept until its end.
    pub(super) fn release_line(&mut self) -> io::Result<()> {
        let text = self.unshown.take();
        self.write_text(&text)
    }

    /// Prints the text that was kept, because it counts.
    pub(super) fn release_answer(&mut self) -> io::Result<()> {
        let text = self.held.take();
        self.write_answer(&text)?;
        self.end_answer()
    }

    /// Prints what was kept to be formatted, and ends the line.
    pub(in crate::cli::run) fn end_answer(&mut self) -> io::Result<()> {
        if let Some(markdown) = &mut self.markdown {
            let rest = markdown.finish();
            self.write_to_line(&rest)?;
        }
        self.end_line()
    }

    pub(in crate::cli::run) fn write_answer(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if !self.progress.has_typed() {
            self.progress.clear();
        }
        if let Some(markdown) = &mut self.markdown {
            markdown.set_width(Screen::of_stdout().width.unwrap_or(WIDTH_OF_PIPE));
            let shown = markdown.push(text);
            return self.write_to_line(&shown);
        }
        if self.stdout_is_terminal {
            let filtered = self.filter.push(text);
            return self.write_to_line(&filtered);
        }
        self.write_to_line(text)
    }

    /// Writes to stdout, but only whole lines while something is typed below them.
    fn write_to_line(&mut self, text: &str) -> io::Result<()> {
        let shown = self.unshown.push(text, self.progress.has_typed());
        self.write_text(&shown)
    }

    /// Writes to stdout, and notes where that ends.
    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let Some(last) = text.as_bytes().last() else { return Ok(()) };
        self.progress.clear();
        self.in_middle_of_line = *last != b'\n';
        if self.stdout_is_terminal {
            self.row.push(text, Screen::of_stdout().width.unwrap_or(0));
        }
        self.write_stdout(text)
    }

    /// Writes a line of JSON.
    pub(in crate::cli::run) fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.progress.clear();
        self.write_stdout(&format!("{line}\n"))
    }

    pub(super) fn write_stdout(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
