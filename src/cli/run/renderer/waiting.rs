//! The line that says what a run waits for, next to the answer and the thoughts of the model.

use std::io;

use kontekst_pb::progress_event::Progress;

use crate::cli::{output::Verbosity, printable::printable, run::progress::Activity};

use super::{RunRenderer, write_stderr};

impl RunRenderer {
    /// Waits until the line has to be drawn that says what the run waits for. Waits forever if there is nothing to say.
    pub(in crate::cli::run) async fn progress_due(&self) {
        self.progress.due().await;
    }

    /// Draws the line for which [`RunRenderer::progress_due`] waited.
    pub(in crate::cli::run) fn draw_progress(&mut self) {
        self.progress.draw();
    }

    /// Says that a daemon is being started.
    pub(in crate::cli::run) fn show_daemon_start(&mut self) {
        self.progress.show_daemon_start();
    }

    /// Shows what somebody types, in one line that is printable. The answer comes in whole lines meanwhile.
    pub(in crate::cli::run) fn show_typed(&mut self, line: String) -> io::Result<()> {
        let is_over = line.is_empty();
        self.progress.show_typed(line, self.row.text());
        if is_over {
            self.release_thought();
            self.release_line()?;
            if self.shares_line() {
                self.progress.wait_for_more(false);
            }
        }
        Ok(())
    }

    /// Shows what was typed again, after other output.
    pub(in crate::cli::run) fn restore_typed(&mut self) {
        self.progress.restore_typed(self.row.text());
    }

    /// Begins on a new screen, because another program has written to this one.
    pub(in crate::cli::run) fn forget_screen(&mut self) {
        self.progress.forget_screen();
        self.row.clear();
    }

    /// Wipes the line that says what the run waits for, because it is over.
    pub(in crate::cli::run) fn end_wait(&mut self) {
        self.progress.end_wait();
    }

    /// Notes a report of the daemon.
    pub(super) fn report(&mut self, progress: &Progress) -> io::Result<()> {
        // The line of the report cannot share a line with the answer.
        if matches!(progress, Progress::Writing(_)) && self.stdout_is_terminal {
            self.end_line()?;
        }
        self.progress.report(progress);
        Ok(())
    }

    /// Shows a piece of the answer, or keeps it.
    pub(super) fn render_text_of_answer(&mut self, piece: &str) -> io::Result<()> {
        let is_shown = !self.waits_for_whole_answer;
        let text = if is_shown { self.held.push(piece) } else { String::new() };
        if text.is_empty() {
            self.progress.go_on(Activity::HeldAnswer);
            return Ok(());
        }
        self.write_answer(&text)?;
        self.progress.wait_for_more(!self.shares_line());
        Ok(())
    }

    /// Returns true if the answer has begun a line on the terminal, where the line of the progress would be.
    fn shares_line(&self) -> bool {
        self.stdout_is_terminal && self.in_middle_of_line
    }

    /// Shows a thought of the model, or that it thinks.
    pub(super) fn write_reasoning(&mut self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            let text = self.unshown_thought.push(&printable(text), self.progress.has_typed());
            self.write_thought(&text);
        } else if !self.shares_line() {
            self.progress.go_on(Activity::Thinking);
        }
    }

    /// Shows the beginning of a line of thought that was kept until its end.
    pub(super) fn release_thought(&mut self) {
        let text = self.unshown_thought.take();
        self.write_thought(&text);
    }

    fn write_thought(&mut self, text: &str) {
        if !text.is_empty() {
            self.progress.continue_line();
            self.row.clear();
            write_stderr(&self.palette.dim(text));
            self.progress.begin_line(text);
        }
    }
}
