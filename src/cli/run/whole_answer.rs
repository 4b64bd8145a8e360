//! The answer of a run that is over, if it is not printed while it arrives.

use std::io;

use crate::cli::{error::CliError, markdown::first_code_block};

use super::{output_file::OutputFile, renderer::RunRenderer};

/// The things that are done with an answer only when all of it is there.
pub(super) struct WholeAnswer {
    /// Only its first block of code is wanted.
    pub(super) extract: bool,
    /// It goes to this file and not to stdout.
    pub(super) file: Option<OutputFile>,
}

impl WholeAnswer {
    /// Writes the answer of a run that has completed.
    ///
    /// # Errors
    ///
    /// The answer does not have what is wanted of it, or it cannot be written.
    pub(super) fn deliver(&self, answer: &str, renderer: &mut RunRenderer) -> Result<(), CliError> {
        let text = if self.extract { extracted(answer)? } else { with_line_end(answer) };
        let Some(file) = &self.file else { return Ok(print(&text, renderer)?) };
        file.write(&text)?;
        renderer.note_on_terminal(&format!("wrote {} bytes to {}", text.len(), file.shown()));
        Ok(())
    }
}

fn print(text: &str, renderer: &mut RunRenderer) -> io::Result<()> {
    renderer.write_answer(text)?;
    renderer.end_answer()
}

fn extracted(answer: &str) -> Result<String, CliError> {
    first_code_block(answer).ok_or_else(|| {
        CliError::failed("the answer has no fenced block of code")
            .hint("`kontekst sessions show` prints the answer; ask for a code block, or leave --extract out")
    })
}

fn with_line_end(answer: &str) -> String {
    if answer.ends_with('\n') { answer.to_owned() } else { format!("{answer}\n") }
}
