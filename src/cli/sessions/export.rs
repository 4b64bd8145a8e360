//! `kontekst sessions export`: a conversation as Markdown.

use std::io::{self, Write};

use kontekst_core::{Message, Role};
use kontekst_store::sessions::Entry;

use super::{list, show::Shown};

use crate::cli::error::CliError;

/// The form of an exported conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ExportFormat {
    Markdown,
    /// As `show --json` prints it
    Json,
}

pub(super) fn export(shown: &Shown<'_>, format: ExportFormat, out: &mut dyn Write) -> Result<(), CliError> {
    match format {
        ExportFormat::Json => shown.write_json(out),
        ExportFormat::Markdown => write_markdown(shown, out),
    }
}

/// Writes message by message, because a conversation can be larger than the memory that it should take.
fn write_markdown(shown: &Shown<'_>, out: &mut dyn Write) -> Result<(), CliError> {
    let title = list::title(&shown.overview).split_whitespace().collect::<Vec<_>>().join(" ");
    writeln!(out, "# {title}\n\nSession `{}`", shown.session.id)?;
    for entry in shown.sessions.entries(&shown.session.id)? {
        match entry? {
            Entry::Message(message) => write_message(&message, out)?,
            Entry::Damaged { line } => writeln!(out, "\n*Line {line} of the file is damaged.*")?,
        }
    }
    Ok(())
}

fn write_message(message: &Message, out: &mut dyn Write) -> io::Result<()> {
    if let Some(result) = &message.tool_result {
        let failed = if result.is_error { ", failed" } else { "" };
        writeln!(out, "\n### Result of {}{failed}\n", result.name)?;
        return write_fenced("", &result.output, out);
    }
    let heading = match message.role {
        Role::System => "Summary",
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::Tool => "Tool",
    };
    writeln!(out, "\n## {heading}")?;
    if !message.content.trim().is_empty() {
        writeln!(out, "\n{}", message.content.trim_end())?;
    }
    if !message.context.is_empty() {
        writeln!(out, "\n### Read for it\n")?;
        write_fenced("", &message.context, out)?;
    }
    for call in &message.tool_calls {
        writeln!(out, "\n### Call of {}\n", call.name)?;
        write_fenced("json", &call.arguments, out)?;
    }
    Ok(())
}

/// Writes a code block whose fence is longer than every run of backticks in the text.
fn write_fenced(language: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}
