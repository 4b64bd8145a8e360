//! One conversation, as text or as JSON, a message at a time.

use std::{
    io::{self, Write},
    time::SystemTime,
};

use serde_json::Value;

use super::{
    format_age, format_size,
    subagents::{state, to_json as worker},
    to_json,
};
use crate::{
    cli::{error::CliError, printable::literal},
    core::{Message, Name, Role},
    sessions::{Entry, SessionSummary, Sessions},
    subagent_log::SubagentSummary,
};

pub(super) fn write_text(
    sessions: &Sessions,
    session: &SessionSummary,
    workers: &[SubagentSummary],
    out: &mut dyn Write,
) -> Result<(), CliError> {
    writeln!(out, "Session   {}", session.id)?;
    writeln!(out, "Status    {}", if session.active { "active" } else { "inactive" })?;
    writeln!(out, "Agent     {}", session.default_agent.as_ref().map_or("-", Name::as_str))?;
    writeln!(out, "Size      {}", format_size(session.bytes))?;
    writeln!(out, "Modified  {}", format_age(SystemTime::now(), session.modified))?;
    if let Some(parent) = &session.parent {
        writeln!(out, "Parent    {parent}")?;
    }
    for (at, worker) in workers.iter().enumerate() {
        let label = if at == 0 { "Workers" } else { "" };
        writeln!(out, "{label:<9} {} ({}, {})", worker.id, one_line(&worker.agent), state(worker))?;
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
    let some = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let lost = if damaged == 0 { String::new() } else { format!(", {}", some(damaged, "damaged line")) };
    Ok(writeln!(out, "\n{}{lost}", some(count, "message"))?)
}

/// Everything that was said is indented, so that no message can look like the start of another.
fn write_message(message: &Message, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "\n{}", message.role.as_str())?;
    match (&message.tool_result, &message.agent_name) {
        (Some(result), _) => {
            write!(out, " {}{}", one_line(&result.name), if result.is_error { " (error)" } else { "" })?;
        }
        (None, Some(agent)) if message.role == Role::Assistant => write!(out, " {}", one_line(agent))?,
        _ => {}
    }
    match message.tokens {
        0 => writeln!(out)?,
        tokens => writeln!(out, " · {tokens} tokens")?,
    }
    let said =
        [Some(message.content.as_str()), message.tool_result.as_ref().map(|result| result.output.as_str())];
    for line in said.into_iter().flatten().flat_map(str::lines) {
        writeln!(out, "{}", format_args!("  {line}").to_string().trim_end())?;
    }
    for call in &message.tool_calls {
        // Literally: this is the record of what was approved.
        writeln!(out, "  → {} {}", one_line(&call.name), one_line(&call.arguments))?;
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    literal(text).replace('\n', "\\n")
}

pub(super) fn write_json(
    sessions: &Sessions,
    session: &SessionSummary,
    workers: &[SubagentSummary],
    out: &mut dyn Write,
) -> Result<(), CliError> {
    // Written piece by piece: a conversation can be larger than memory should be.
    let head = to_json(session).to_string();
    let head = head.strip_suffix('}').expect("an object ends so");
    let workers: Vec<Value> = workers.iter().map(worker).collect();
    write!(out, "{head},\"workers\":{},\"messages\":[", Value::from(workers))?;
    let mut damaged = Vec::new();
    let mut first = true;
    for entry in sessions.entries(&session.id)? {
        match entry? {
            Entry::Message(message) => {
                let line = serde_json::to_string(&message).expect("strings and numbers");
                write!(out, "{}\n{line}", if first { "" } else { "," })?;
                first = false;
            }
            Entry::Damaged { line } => damaged.push(line),
        }
    }
    Ok(writeln!(out, "\n],\"damaged_lines\":{}}}", Value::from(damaged))?)
}
