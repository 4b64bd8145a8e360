//! `kontekst sessions show`: one conversation as text or as JSON. It is written message by message, because a
//! conversation can be larger than the memory that it should take.

use std::{
    io::{self, Write},
    time::SystemTime,
};

use serde_json::Value;

use super::{list, subagents};
use crate::{
    cli::{
        error::CliError,
        json::json_line,
        printable::literal_line,
        units::{age, counted, short_bytes},
    },
    core::{Message, Name, Role},
    sessions::{Entry, SessionSummary, Sessions},
    subagent_log::SubagentSummary,
};

pub(super) fn write_text(
    sessions: &Sessions,
    session: &SessionSummary,
    subagents: &[SubagentSummary],
    out: &mut dyn Write,
) -> Result<(), CliError> {
    writeln!(out, "Session   {}", session.id)?;
    writeln!(out, "Status    {}", if session.active { "active" } else { "inactive" })?;
    writeln!(out, "Agent     {}", session.default_agent.as_ref().map_or("-", Name::as_str))?;
    writeln!(out, "Size      {}", short_bytes(session.bytes))?;
    writeln!(out, "Modified  {}", age(SystemTime::now(), session.modified))?;
    if let Some(parent) = &session.parent {
        writeln!(out, "Parent    {parent}")?;
    }
    for (index, subagent) in subagents.iter().enumerate() {
        let label = if index == 0 { "Workers" } else { "" };
        let (agent, state) = (literal_line(&subagent.agent), subagents::state(subagent));
        writeln!(out, "{label:<9} {} ({agent}, {state})", subagent.id)?;
    }
    let mut count = 0_u64;
    let mut damaged = 0_u64;
    for entry in sessions.entries(&session.id)? {
        match entry? {
            Entry::Message(message) => {
                count += 1;
                write_message(&message, out)?;
            }
            Entry::Damaged { line } => {
                damaged += 1;
                writeln!(out, "\n(line {line} of the file is damaged)")?;
            }
        }
    }
    let damaged =
        if damaged == 0 { String::new() } else { format!(", {}", counted(damaged, "damaged line")) };
    Ok(writeln!(out, "\n{}{damaged}", counted(count, "message"))?)
}

/// Writes one message. Its text is indented, so that it cannot look like the start of another message.
fn write_message(message: &Message, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "\n{}", message.role.as_str())?;
    match (&message.tool_result, &message.agent_name) {
        (Some(result), _) => {
            write!(out, " {}{}", literal_line(&result.name), if result.is_error { " (error)" } else { "" })?;
        }
        (None, Some(agent)) if message.role == Role::Assistant => write!(out, " {}", literal_line(agent))?,
        _ => {}
    }
    match message.tokens {
        0 => writeln!(out)?,
        tokens => writeln!(out, " · {tokens} tokens")?,
    }
    let texts =
        [Some(message.content.as_str()), message.tool_result.as_ref().map(|result| result.output.as_str())];
    for line in texts.into_iter().flatten().flat_map(str::lines) {
        writeln!(out, "{}", format_args!("  {line}").to_string().trim_end())?;
    }
    for call in &message.tool_calls {
        // Nothing is removed here, because this is the record of what was approved.
        writeln!(out, "  → {} {}", literal_line(&call.name), literal_line(&call.arguments))?;
    }
    Ok(())
}

pub(super) fn write_json(
    sessions: &Sessions,
    session: &SessionSummary,
    subagents: &[SubagentSummary],
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let head = json_line(&list::to_json(session));
    let head = head.strip_suffix('}').expect("a JSON object ends with a brace");
    let subagents: Vec<Value> = subagents.iter().map(subagents::to_json).collect();
    write!(out, "{head},\"workers\":{},\"messages\":[", json_line(&subagents))?;
    let mut damaged = Vec::new();
    let mut first = true;
    for entry in sessions.entries(&session.id)? {
        match entry? {
            Entry::Message(message) => {
                write!(out, "{}\n{}", if first { "" } else { "," }, json_line(&message))?;
                first = false;
            }
            Entry::Damaged { line } => damaged.push(line),
        }
    }
    Ok(writeln!(out, "\n],\"damaged_lines\":{}}}", json_line(&damaged))?)
}
