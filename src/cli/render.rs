//! What a run shows: the answer on stdout, everything else on stderr.

use std::{
    collections::HashMap,
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use crate::{
    core::Environment,
    pb::{self, progress_event::Progress, run_event::Event},
};

use super::{
    approval_prompt::format_arguments,
    printable::{Printable, printable},
    subagent_names::SubagentNames,
};

/// Colours, or none.
#[derive(Clone, Copy)]
pub(super) struct Palette {
    enabled: bool,
}

impl Palette {
    /// Colours if `terminal` and nobody asked for none.
    pub(super) fn new(terminal: bool, environment: &Environment) -> Self {
        let unwanted = environment.non_empty("NO_COLOR").is_some()
            || environment.get("TERM").is_some_and(|term| term == "dumb");
        Self { enabled: terminal && !unwanted }
    }

    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { enabled: false }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.enabled { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(super) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }
}

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// How the answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The model's text as it comes.
    Text,
    /// Every event as a JSON line.
    Json,
}

/// Nothing is shown of a wait that is shorter than this.
const PROGRESS_DELAY: Duration = Duration::from_millis(400);

/// The two outputs of one run.
pub(super) struct RunRenderer {
    format: Format,
    verbosity: Verbosity,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    palette: Palette,
    filter: Printable,
    /// stdout ends in the middle of a line.
    in_middle_of_line: bool,
    /// stderr shows a line that will be overwritten.
    progress_shown: bool,
    started_at: Instant,
    call_descriptions: HashMap<String, String>,
    workers: SubagentNames,
}

impl RunRenderer {
    pub(super) fn new(format: Format, verbosity: Verbosity, environment: &Environment) -> Self {
        let stderr_is_terminal = io::stderr().is_terminal();
        Self {
            format,
            verbosity,
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal,
            palette: Palette::new(stderr_is_terminal, environment),
            filter: Printable::default(),
            in_middle_of_line: false,
            progress_shown: false,
            started_at: Instant::now(),
            call_descriptions: HashMap::new(),
            workers: SubagentNames::default(),
        }
    }

    pub(super) fn palette(&self) -> Palette {
        self.palette
    }

    /// Shows an event.
    ///
    /// # Errors
    ///
    /// stdout cannot be written; [`io::ErrorKind::BrokenPipe`] when its reader has gone.
    pub(super) fn render(&mut self, event: &Event) -> io::Result<()> {
        if self.format == Format::Json {
            let mut line = super::event_json::to_json(event).to_string();
            line.push('\n');
            return self.write_stdout(&line);
        }
        match event {
            Event::Token(token) => return self.write_answer(&token.text),
            Event::Reasoning(reasoning) => {
                if self.verbosity == Verbosity::Verbose {
                    self.clear_progress();
                    self.write_stderr(&self.palette.dim(&printable(&reasoning.text)));
                }
            }
            Event::Progress(progress) => self.progress(progress.progress.as_ref()),
            Event::Notice(notice) => self.print_status(Verbosity::Normal, &printable(&notice.text)),
            Event::Compacted(done) => self.print_status(
                Verbosity::Normal,
                &format!(
                    "the conversation was summarised: {} → {} tokens; the session file keeps all of it",
                    done.tokens_before, done.tokens_after
                ),
            ),
            Event::ToolsProposed(proposed) => {
                self.end_line()?;
                for call in &proposed.calls {
                    let shown =
                        format!("{} {}", printable(&call.name), format_arguments(&call.arguments_json));
                    self.call_descriptions.insert(call.call_id.clone(), shown);
                }
            }
            Event::ToolStarted(started) => {
                self.end_line()?;
                let shown = self.call_descriptions.get(&started.call_id).cloned();
                let shown = shown.unwrap_or_else(|| printable(&started.name));
                self.print_status(Verbosity::Normal, &format!("· {shown}"));
            }
            Event::ToolCompleted(done) => {
                let (lines, bytes) = (done.output.lines().count(), done.output.len());
                self.print_status(Verbosity::Verbose, &format!("  done: {lines} line(s), {bytes} bytes"));
            }
            Event::ToolFailed(failed) => {
                let first = failed.error.lines().next().unwrap_or_default();
                self.print_status(
                    Verbosity::Normal,
                    &self.palette.red(&format!("  failed: {}", printable(first))),
                );
            }
            Event::TurnCompleted(turn) => {
                self.end_line()?;
                if let Some(context) = &turn.context {
                    self.print_status(Verbosity::Verbose, &format_context(context));
                }
            }
            Event::Completed(_) | Event::Cancelled(_) | Event::Failed(_) => {
                self.clear_progress();
                self.end_line()?;
            }
            Event::Started(started) => {
                self.print_status(
                    Verbosity::Verbose,
                    &format!("run {} in session {}", started.run_id, started.session_id),
                );
            }
            Event::Worker(event) => {
                if let Some((level, text)) = self.workers.describe(event) {
                    self.end_line()?;
                    self.print_status(level, &format!("  {text}"));
                }
            }
            Event::ContextSnapshot(_) | Event::ToolsCompleted(_) => {}
        }
        Ok(())
    }

    fn write_answer(&mut self, text: &str) -> io::Result<()> {
        self.clear_progress();
        let filtered;
        let text = if self.stdout_is_terminal {
            filtered = self.filter.push(text);
            &filtered
        } else {
            text
        };
        if let Some(last) = text.as_bytes().last() {
            self.in_middle_of_line = *last != b'\n';
            self.write_stdout(text)?;
        }
        Ok(())
    }

    fn write_stdout(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Ends the line that stdout is in, so that what follows starts on its own.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_middle_of_line) { self.write_stdout("\n") } else { Ok(()) }
    }

    /// A sentence on stderr.
    pub(super) fn print_status(&mut self, level: Verbosity, text: &str) {
        if level <= self.verbosity && self.format == Format::Text {
            self.clear_progress();
            self.write_stderr(&format!("{}\n", self.palette.dim(text)));
        }
    }

    fn write_stderr(&self, text: &str) {
        // There is nobody left to tell when stderr is closed.
        io::stderr().write_all(text.as_bytes()).ok();
    }

    fn progress(&mut self, progress: Option<&Progress>) {
        if !self.stderr_is_terminal
            || self.verbosity == Verbosity::Quiet
            || self.started_at.elapsed() < PROGRESS_DELAY
        {
            return;
        }
        let text = match progress {
            Some(Progress::Queued(queued)) if queued.waiting_for == "session" => {
                "the session is busy with another run; waiting (--new starts another session)".to_owned()
            }
            Some(Progress::Queued(queued)) => format!("number {} in the queue for the model", queued.place),
            Some(Progress::Loading(loading)) => {
                let part = loading.fraction.map(|part| format!(" {:.0} %", part * 100.0)).unwrap_or_default();
                format!("loading {}{part}", printable(&loading.model))
            }
            Some(Progress::Prefill(prefill)) => {
                format!("reading the prompt: {} of {} tokens", prefill.processed, prefill.total)
            }
            None => return,
        };
        self.write_stderr(&format!("\r\x1b[K{}", self.palette.dim(&text)));
        self.progress_shown = true;
    }

    fn clear_progress(&mut self) {
        if std::mem::take(&mut self.progress_shown) {
            self.write_stderr("\r\x1b[K");
        }
    }
}

/// `context: 812/4096 tokens (20 %) | system …`.
fn format_context(context: &pb::ContextSnapshot) -> String {
    let percent = i64::from(context.total_tokens) * 100 / i64::from(context.context_size.max(1));
    let cached = match (context.prompt_tokens, context.cached_tokens) {
        (Some(prompt), Some(cached)) => format!(" | prompt {prompt}, {cached} cached"),
        _ => String::new(),
    };
    format!(
        "context: {}/{} tokens ({percent} %) | system {} tools {} history {} memory {}{cached}",
        context.total_tokens,
        context.context_size,
        context.system_tokens,
        context.tool_tokens,
        context.history_tokens,
        context.memory_tokens,
    )
}
