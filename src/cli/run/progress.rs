//! Shows the reason for which a run waits: on a terminal in a line that the next output replaces, and elsewhere in lines
//! if the user wants to see everything.

use std::{
    io::{self, Write as _},
    time::{Duration, Instant},
};

use crate::{
    cli::{
        output::{Palette, Verbosity},
        printable::printable,
    },
    pb::progress_event::Progress,
};

/// Progress is shown only for a run that takes longer than this.
const DELAY: Duration = Duration::from_millis(400);

/// Shows the progress of one run.
pub(super) struct ProgressLine {
    form: Form,
    palette: Palette,
    show_from: Instant,
    /// The latest report, if it came before `show_from` and no other event has followed it.
    early: Option<Progress>,
    /// stderr ends in a progress line, which the next output replaces.
    is_shown: bool,
    /// The kind of the report that was written as a line of its own last.
    written: &'static str,
}

/// The way in which progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Hidden,
    /// One line of the terminal, which each report replaces.
    Replaced,
    /// A line for each kind of report, but not for each number in it.
    Lines,
}

impl ProgressLine {
    pub(super) fn new(is_terminal: bool, verbosity: Verbosity, palette: Palette) -> Self {
        let form = match (is_terminal, verbosity) {
            (true, Verbosity::Normal | Verbosity::Verbose) => Form::Replaced,
            (false, Verbosity::Verbose) => Form::Lines,
            (_, Verbosity::Quiet) | (false, Verbosity::Normal) => Form::Hidden,
        };
        let show_from = Instant::now() + DELAY;
        Self { form, palette, show_from, early: None, is_shown: false, written: "" }
    }

    /// Takes a report. It is shown at once, or at [`ProgressLine::due`] if the run has only begun.
    pub(super) fn report(&mut self, progress: &Progress) {
        if Instant::now() < self.show_from {
            self.early = Some(progress.clone());
        } else {
            self.show(progress);
        }
    }

    /// Forgets the report that was to be shown later, because its wait is over.
    pub(super) fn end_wait(&mut self) {
        self.early = None;
        self.written = "";
    }

    /// Waits until an early report has to be shown. Waits forever if there is none.
    pub(super) async fn due(&self) {
        match self.early {
            Some(_) if self.form != Form::Hidden => tokio::time::sleep_until(self.show_from.into()).await,
            _ => std::future::pending().await,
        }
    }

    /// Shows the early report.
    pub(super) fn show_early(&mut self) {
        if let Some(progress) = self.early.take() {
            self.show(&progress);
        }
    }

    fn show(&mut self, progress: &Progress) {
        let text = || self.palette.dim(&format_progress(progress));
        match self.form {
            Form::Hidden => {}
            Form::Replaced => {
                write(&format!("\r\x1b[K{}", text()));
                self.is_shown = true;
            }
            Form::Lines if self.written == kind(progress) => {}
            Form::Lines => {
                write(&format!("{}\n", text()));
                self.written = kind(progress);
            }
        }
    }

    /// Removes the line from the terminal, before other output.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            write("\r\x1b[K");
        }
    }
}

/// Writes to stderr. If stderr is closed, there is nowhere left to report that.
fn write(text: &str) {
    io::stderr().write_all(text.as_bytes()).ok();
}

fn kind(progress: &Progress) -> &'static str {
    match progress {
        Progress::Queued(queued) if queued.waiting_for == "session" => "session",
        Progress::Queued(_) => "queue",
        Progress::Loading(_) => "loading",
        Progress::Prefill(_) => "prefill",
        Progress::Postponed(_) => "postponed",
    }
}

fn format_progress(progress: &Progress) -> String {
    match progress {
        Progress::Queued(queued) if queued.waiting_for == "session" => {
            "waiting for another run of this session (--new starts another session)".to_owned()
        }
        Progress::Queued(queued) => format!("number {} in the queue for the model", queued.place),
        Progress::Loading(loading) => {
            let percent = loading.fraction.map(|part| format!(" {:.0} %", part * 100.0)).unwrap_or_default();
            format!("loading {}{percent}", printable(&loading.model))
        }
        Progress::Prefill(prefill) => {
            format!("reading the prompt: {} of {} tokens", prefill.processed, prefill.total)
        }
        Progress::Postponed(postponed) => format!("the model server asks to wait {} s", postponed.seconds),
    }
}
