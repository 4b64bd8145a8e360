//! Shows the events of a run: the answer on stdout, everything else on stderr.

mod answer;
mod calls;
mod facts_line;
mod waiting;

use std::{
    collections::HashMap,
    io::{self, IsTerminal as _, Write as _},
};

use kontekst_core::Environment;
use kontekst_pb::{self as pb, run_event::Event};

use crate::cli::{
    event_json,
    json::json_line,
    markdown::Markdown,
    output::{ColorChoice, Palette, Verbosity, columns},
    printable::{Printable, printable},
    subagent_names::SubagentNames,
    wrap::wrap,
};

use facts_line::facts_line;

use super::{
    command_output::CommandOutput,
    context_line::{format_compaction, format_context},
    held_answer::HeldAnswer,
    progress::{Activity, ProgressLine, ProgressScreen},
    screen_row::ScreenRow,
    whole_lines::WholeLines,
};

/// The form of the output on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Format {
    /// The model's text as it comes.
    Text,
    /// The whole run as one JSON object, when it is over.
    Json,
    /// Every event as one line of JSON.
    StreamJson,
}

/// The width for which Markdown is formatted where no terminal says how wide it is.
const WIDTH_OF_PIPE: usize = 80;

/// Writes the events of one run to stdout and stderr.
pub(in crate::cli) struct RunRenderer {
    format: Format,
    verbosity: Verbosity,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    progress_screen: ProgressScreen,
    palette: Palette,
    filter: Printable,
    /// Formats the answer, if it is not printed as it is.
    markdown: Option<Markdown>,
    /// The answer is not printed as it arrives, because all of it is wanted at once.
    waits_for_whole_answer: bool,
    /// The last byte on stdout was not a line feed.
    in_middle_of_line: bool,
    /// The row of the terminal in which the answer ends.
    row: ScreenRow,
    /// The beginning of a line of the answer, and of a thought, that is shown when its end has come, because what is typed
    /// stands below the answer.
    unshown: WholeLines,
    unshown_thought: WholeLines,
    held: HeldAnswer,
    progress: ProgressLine,
    /// Name and arguments of the proposed calls, by call id.
    call_descriptions: HashMap<String, String>,
    /// The id of the call whose line was written last.
    last_call: String,
    /// The output of the calls that run now, by call id.
    outputs: HashMap<String, CommandOutput>,
    subagent_names: SubagentNames,
    /// The context that was printed last as JSON.
    last_context: Option<pb::ContextSnapshot>,
    is_in_chat: bool,
    /// The run has tools that change something.
    can_change: bool,
}

impl RunRenderer {
    pub(in crate::cli) fn new(format: Format, verbosity: Verbosity, environment: &Environment) -> Self {
        let screen = ProgressScreen::of_stderr(environment);
        let mut renderer = Self::with_palette(format, verbosity, screen, Palette::none(), None);
        renderer.choose_color(ColorChoice::Auto, environment);
        renderer
    }

    /// Says when colours are printed. Markdown is formatted on a terminal with colours, and elsewhere only for
    /// [`ColorChoice::Always`].
    pub(super) fn choose_color(&mut self, color: ColorChoice, environment: &Environment) {
        let stdout_palette = Palette::new(color, self.stdout_is_terminal, environment);
        let palette = Palette::new(color, self.stderr_is_terminal, environment);
        let is_formatted =
            stdout_palette.is_enabled() && (self.stdout_is_terminal || color == ColorChoice::Always);
        let markdown = is_formatted.then(|| Markdown::new(WIDTH_OF_PIPE, stdout_palette));
        *self = Self::with_palette(self.format, self.verbosity, self.progress_screen, palette, markdown);
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Prints the answer as the model wrote it.
    pub(super) fn keep_markdown(&mut self) {
        self.markdown = None;
    }

    /// Prints nothing of an answer while it arrives.
    pub(super) fn wait_for_whole_answer(&mut self) {
        (self.waits_for_whole_answer, self.markdown) = (true, None);
    }

    fn with_palette(
        format: Format,
        verbosity: Verbosity,
        progress_screen: ProgressScreen,
        palette: Palette,
        markdown: Option<Markdown>,
    ) -> Self {
        let stderr_is_terminal = progress_screen != ProgressScreen::None;
        // The events on stdout have the progress, too.
        let shown = if format == Format::StreamJson { Verbosity::Quiet } else { verbosity };
        Self {
            format,
            verbosity,
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal,
            progress_screen,
            palette,
            filter: Printable::default(),
            markdown,
            waits_for_whole_answer: false,
            in_middle_of_line: false,
            row: ScreenRow::default(),
            unshown: WholeLines::default(),
            unshown_thought: WholeLines::default(),
            held: HeldAnswer::default(),
            progress: ProgressLine::new(progress_screen, shown, palette),
            call_descriptions: HashMap::new(),
            last_call: String::new(),
            outputs: HashMap::new(),
            subagent_names: SubagentNames::default(),
            last_context: None,
            is_in_chat: false,
            can_change: true,
        }
    }

    /// Forgets the run before, so that the events of another one can be shown.
    pub(super) fn begin(&mut self) {
        let mut markdown = self.markdown.take();
        if let Some(markdown) = &mut markdown {
            markdown.finish();
        }
        let (waits_for_whole_answer, is_in_chat) = (self.waits_for_whole_answer, self.is_in_chat);
        let empty =
            Self::with_palette(self.format, self.verbosity, self.progress_screen, self.palette, markdown);
        *self = Self { waits_for_whole_answer, is_in_chat, ..empty };
    }

    pub(in crate::cli) fn palette(&self) -> Palette {
        self.palette
    }

    /// Shows an event.
    ///
    /// # Errors
    ///
    /// Returns the error of stdout: [`io::ErrorKind::BrokenPipe`] if its reader closed it.
    pub(super) fn render(&mut self, event: &Event) -> io::Result<()> {
        match self.format {
            Format::StreamJson => self.render_json(event),
            Format::Text | Format::Json => self.render_text(event),
        }
    }

    fn render_json(&mut self, event: &Event) -> io::Result<()> {
        match event {
            // The event before has the same context.
            Event::ContextSnapshot(event) if event.context == self.last_context => return Ok(()),
            Event::TurnCompleted(turn) => self.last_context.clone_from(&turn.context),
            _ => {}
        }
        self.write_line(&json_line(&event_json::to_json(event)))
    }

    fn render_text(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Token(token) => return self.render_text_of_answer(&token.text),
            Event::Reasoning(reasoning) => {
                self.write_reasoning(&reasoning.text);
                return Ok(());
            }
            Event::Progress(event) => {
                return event.progress.as_ref().map_or(Ok(()), |progress| self.report(progress));
            }
            _ => {
                self.release_thought();
                self.progress.end_wait();
            }
        }
        match event {
            Event::Token(_) | Event::Reasoning(_) | Event::Progress(_) => {}
            Event::Notice(notice) => {
                self.end_line()?;
                self.note(Verbosity::Normal, &self.wrap(&printable(&notice.text)));
            }
            Event::Compacted(compacted) => self.note(Verbosity::Normal, &format_compaction(*compacted)),
            Event::ToolsProposed(_)
            | Event::ToolStarted(_)
            | Event::ToolOutput(_)
            | Event::ToolCompleted(_)
            | Event::ToolFailed(_) => self.render_call(event)?,
            Event::TurnCompleted(turn) => {
                self.end_answer()?;
                for call in &turn.calls {
                    self.remember_call(&call.call_id, &call.name, &call.arguments_json);
                }
                if let Some(context) = &turn.context {
                    self.note(Verbosity::Verbose, &format_context(context));
                }
            }
            Event::TurnedBack(_) | Event::Completed(_) | Event::Cancelled(_) | Event::Failed(_) => {
                self.render_end_of_answer(event)?;
            }
            Event::Started(started) => self.render_start(started),
            Event::Worker(event) => {
                if let Some((level, text)) = self.subagent_names.describe(event) {
                    self.end_line()?;
                    self.note(level, &format!("  {text}"));
                }
            }
            Event::Check(check) => {
                self.end_line()?;
                self.show_check(check);
            }
            Event::Facts(facts) => {
                self.end_line()?;
                self.note_facts(facts);
            }
            // The question on the terminal says who decided.
            Event::ContextSnapshot(_) | Event::ToolsCompleted(_) | Event::ToolDecided(_) => {}
        }
        Ok(())
    }

    fn render_start(&mut self, started: &pb::RunStartedEvent) {
        if started.answers_may_be_turned_back && !self.stdout_is_terminal {
            self.held.start();
        }
        self.note(Verbosity::Verbose, &format!("run {} in session {}", started.run_id, started.session_id));
        self.progress.go_on(Activity::Preparation);
    }

    /// Prints what was kept of an answer, or drops it.
    fn render_end_of_answer(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::TurnedBack(turned_back) => {
                self.held.turn_back();
                let reason = printable(&turned_back.reason);
                self.note(Verbosity::Normal, &self.wrap(&format!("turned back: {reason}")));
            }
            Event::Completed(_) | Event::Cancelled(_) => self.release_answer()?,
            Event::Failed(_) => {
                let text = self.held.take();
                self.write_answer(&text)?;
                self.end_answer()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes a line to stderr if the user wants to see this much and the events are not printed as JSON.
    pub(super) fn note(&mut self, level: Verbosity, text: &str) {
        if level <= self.verbosity && self.format != Format::StreamJson {
            self.progress.clear();
            self.row.clear();
            write_stderr(&format!("{}\n", self.palette.dim(text)));
        }
    }

    /// Names the commands of a chat in what is said about a run.
    pub(in crate::cli) fn name_commands_of_chat(&mut self) {
        self.is_in_chat = true;
    }

    /// Says whether the next run has tools that change something. Otherwise it is not said that it has changed nothing.
    pub(super) fn set_can_change(&mut self, can_change: bool) {
        self.can_change = can_change;
    }

    /// Says in one line what the run has done.
    fn note_facts(&mut self, facts: &pb::RunFactsEvent) {
        let nothing = event_json::nothing_changed(facts) && facts.commands.is_empty();
        if nothing && (self.is_in_chat || !self.can_change) {
            return;
        }
        let text = facts_line(facts, if self.is_in_chat { "/undo" } else { "`kontekst undo`" });
        self.note(Verbosity::Normal, &self.wrap(&printable(&text)));
    }

    /// Says something that a program that reads stderr has not asked for.
    pub(super) fn note_on_terminal(&mut self, text: &str) {
        self.note(self.changes_level(), text);
    }

    /// Returns how much a user must want to see to be told about changes. A program that reads stderr has not asked.
    fn changes_level(&self) -> Verbosity {
        if self.stderr_is_terminal { Verbosity::Normal } else { Verbosity::Verbose }
    }

    /// Breaks a text between its words where a terminal would break it inside of them.
    fn wrap(&self, text: &str) -> String {
        wrap(text, if self.stderr_is_terminal { columns(io::stderr()) } else { 0 })
    }

    fn show_check(&mut self, check: &pb::CheckEvent) {
        if !check.finished {
            let before = if check.round == 0 { " before the first change" } else { "" };
            self.note(Verbosity::Normal, &format!("· check `{}`{before}", printable(&check.command)));
            return;
        }
        for line in check.output.lines() {
            self.note(Verbosity::Verbose, &format!("  {}", printable(line)));
        }
        let summary = printable(&check.summary);
        let text = match (check.passed, check.round) {
            (true, _) => format!("  passed: {summary}"),
            (false, 0) => format!("  fails already: {summary}"),
            (false, _) => self.palette.red(&format!("  failed: {summary}")),
        };
        self.note(Verbosity::Normal, &text);
    }
}

/// Writes to stderr. If stderr is closed, there is nowhere left to report that.
fn write_stderr(text: &str) {
    io::stderr().write_all(text.as_bytes()).ok();
}
