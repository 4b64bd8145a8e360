//! Shows the calls of a run on stderr.

use std::io;

use kontekst_pb::{self as pb, run_event::Event};

use crate::cli::{
    output::{Verbosity, columns},
    printable::printable,
    run::approval_prompt::format_arguments,
    table::cut,
};

use super::RunRenderer;

/// The part of each argument that is shown when a call starts. Whoever approved it has seen all of it.
const MAX_VALUE_CHARS: usize = 60;

impl RunRenderer {
    /// Shows what becomes of a call. The text before a call counts.
    pub(super) fn render_call(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::ToolsProposed(proposed) => {
                self.release_answer()?;
                for call in &proposed.calls {
                    self.remember_call(&call.call_id, &call.name, &call.arguments_json);
                }
            }
            Event::ToolStarted(started) => {
                self.release_answer()?;
                self.note_call(&started.call_id, &started.name);
            }
            Event::ToolOutput(output) => {
                self.end_line()?;
                self.show_part(output);
            }
            Event::ToolCompleted(completed) => self.show_completed(completed),
            Event::ToolFailed(failed) => {
                self.release_answer()?;
                self.show_failed(failed);
            }
            _ => {}
        }
        Ok(())
    }

    fn show_part(&mut self, output: &pb::ToolOutputEvent) {
        let lines = self.outputs.entry(output.call_id.clone()).or_default().push(&output.text);
        self.show_output(&lines);
    }

    fn show_completed(&mut self, completed: &pb::ToolExecutionCompletedEvent) {
        if let Some(mut output) = self.outputs.remove(&completed.call_id) {
            self.show_output(&output.finish());
            let ending = printable(completed.output.lines().next().unwrap_or_default());
            self.note(Verbosity::Normal, &format!("  {ending}"));
        }
        let (lines, bytes) = (completed.output.lines().count(), completed.output.len());
        self.note(Verbosity::Verbose, &format!("  done: {lines} line(s), {bytes} bytes"));
    }

    fn show_failed(&mut self, failed: &pb::ToolExecutionFailedEvent) {
        if let Some(mut output) = self.outputs.remove(&failed.call_id) {
            self.show_output(&output.finish());
        }
        if self.last_call != failed.call_id {
            self.note_call(&failed.call_id, &failed.name);
        }
        // The text is for the model. A person sees as much as one line has room for.
        let is_cut = self.stderr_is_terminal && self.verbosity < Verbosity::Verbose;
        let width = Some(columns(io::stderr())).filter(|width| is_cut && *width > 0).unwrap_or(usize::MAX);
        let first_line = format!("  failed: {}", printable(failed.error.lines().next().unwrap_or_default()));
        self.note(Verbosity::Normal, &self.palette.red(&cut(&first_line, width)));
        for line in failed.error.lines().skip(1) {
            self.note(Verbosity::Verbose, &format!("  {}", printable(line)));
        }
    }

    /// Writes lines that a running command has printed. They are for a person who watches.
    fn show_output(&mut self, lines: &[String]) {
        if self.stderr_is_terminal || self.verbosity == Verbosity::Verbose {
            for line in lines {
                self.note(Verbosity::Normal, line);
            }
        }
    }

    /// Writes the line of a call, below which its result is reported.
    fn note_call(&mut self, id: &str, name: &str) {
        let call = self.call_descriptions.get(id).cloned().unwrap_or_else(|| printable(name));
        id.clone_into(&mut self.last_call);
        self.note(Verbosity::Normal, &format!("· {call}"));
    }

    /// Notes how a call is described when it runs. A call that a rule allows is not proposed before that.
    pub(super) fn remember_call(&mut self, id: &str, name: &str, arguments_json: &str) {
        let arguments = format_arguments(arguments_json, MAX_VALUE_CHARS);
        let description = format!("{} {arguments}", printable(name));
        self.call_descriptions.insert(id.to_owned(), description);
    }
}
