//! The list of what waits for a decision.

use std::{
    io::Write,
    path::Path,
    time::{Duration, SystemTime},
};

use prost_types::Timestamp;
use serde_json::{Value, json};

use kontekst_core::clock;
use kontekst_pb::PendingApproval;
use kontekst_store::{
    config::Home,
    parked::{ParkedCall, ParkedRun},
};

use crate::cli::{
    call_text::of_target,
    error::CliError,
    json::json_pretty,
    printable::{PrintableWriter, literal, literal_line},
    units::{age, short_id},
    working_dir::short_dir,
};

use super::waiting::{Waiting, call_of};

/// The longest beginning of a prompt in the list, in characters.
const MAX_PROMPT: usize = 70;

/// Lists the calls with their previews, because a person should see what they approve, and the parked runs.
pub(super) fn print(waiting: &Waiting, home: &Home, out: &mut PrintableWriter) -> Result<(), CliError> {
    if waiting.calls.is_empty() && waiting.parked.is_empty() {
        return Ok(writeln!(out, "nothing waits for a decision")?);
    }
    for (index, pending) in waiting.calls.iter().enumerate() {
        separate(index, out)?;
        print_call(pending, out)?;
    }
    for (index, run) in waiting.parked.iter().enumerate() {
        separate(waiting.calls.len() + index, out)?;
        print_parked(run, home, out)?;
    }
    if !waiting.parked.is_empty() {
        let text = "`kontekst approvals show RUN` has each call in full, `approve RUN` goes on with it, `deny RUN` forgets it.";
        writeln!(out, "\n{text}")?;
    }
    Ok(())
}

fn separate(index: usize, out: &mut PrintableWriter) -> Result<(), CliError> {
    if index > 0 {
        writeln!(out)?;
    }
    Ok(())
}

fn print_call(pending: &PendingApproval, out: &mut PrintableWriter) -> Result<(), CliError> {
    let call = call_of(pending);
    let since = pending.since_rfc3339.parse().map_or(0, |since: Timestamp| since.seconds);
    let age = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX).saturating_sub(since);
    let [id, name, arguments] =
        [&call.call_id, &call.name, &call.arguments_json].map(|text| literal_line(text));
    writeln!(out, "{id}  {name} {arguments}")?;
    let (run, session, agent) = (&pending.run_id, &pending.session_id, &pending.agent_name);
    writeln!(out, "  run {run}, session {session}, agent {agent}, {age} s ago")?;
    if !call.caution.is_empty() {
        writeln!(out, "  caution: {}", literal_line(&call.caution))?;
    }
    if !call.asked_by.is_empty() {
        writeln!(out, "  {}", literal_line(&call.asked_by))?;
    }
    for line in literal(&call.preview).lines() {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn print_parked(run: &ParkedRun, home: &Home, out: &mut PrintableWriter) -> Result<(), CliError> {
    let id = run.id.to_string();
    let id = if out.is_terminal() { short_id(&id) } else { &id };
    writeln!(out, "{id}  {}", heading(run, home))?;
    for call in run.waiting() {
        let name = literal_line(&call.call.name);
        let target = of_target(&call.call.arguments);
        let reason = reason(call).map(|reason| format!(": {}", literal_line(reason))).unwrap_or_default();
        writeln!(out, "  {name}{target} needs approval{reason}")?;
    }
    Ok(())
}

/// Describes a parked run on one line: its age, its directory and its prompt.
pub(super) fn heading(run: &ParkedRun, home: &Home) -> String {
    let dir = run.working_dir.as_deref().map(|dir: &Path| format!(" in {}", short_dir(dir, home)));
    let line = run.prompt.lines().next().unwrap_or_default();
    let mut prompt: String = line.chars().take(MAX_PROMPT).collect();
    if prompt.len() < run.prompt.len() {
        prompt.push('…');
    }
    let begun = if run.is_begun { ", begun and interrupted" } else { "" };
    let dir = dir.unwrap_or_default();
    format!("parked {}{}{begun}: {}", age_of(run), literal_line(&dir), literal_line(&prompt))
}

/// Returns how long ago a run was parked.
fn age_of(run: &ParkedRun) -> String {
    age(SystemTime::now(), SystemTime::UNIX_EPOCH + Duration::from_millis(run.parked_at))
}

/// Returns why a person should look at a call, if there is more to say than that its tool needs an approval.
fn reason(call: &ParkedCall) -> Option<&str> {
    call.caution.as_deref().or(call.asked_by.as_deref())
}

pub(super) fn print_json(waiting: &Waiting, out: &mut dyn Write) -> Result<(), CliError> {
    let calls: Vec<Value> = waiting.calls.iter().map(call_to_json).collect();
    let parked: Vec<Value> = waiting.parked.iter().map(parked_to_json).collect();
    Ok(writeln!(out, "{}", json_pretty(&json!({"approvals": calls, "parked": parked})))?)
}

fn call_to_json(pending: &PendingApproval) -> Value {
    let call = call_of(pending);
    json!({
        "call": call.call_id, "run": pending.run_id, "session": pending.session_id, "agent": pending.agent_name,
        "since": pending.since_rfc3339, "tool": call.name,
        "arguments": call.arguments_json, "preview": call.preview, "caution": call.caution,
        "asked_by": call.asked_by,
    })
}

pub(super) fn parked_to_json(run: &ParkedRun) -> Value {
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(run.parked_at);
    let calls: Vec<Value> = run
        .waiting()
        .map(|ParkedCall { call, preview, caution, asked_by, .. }| {
            json!({
                "call": call.id, "tool": call.name, "arguments": call.arguments, "preview": preview,
                "caution": caution.as_deref().unwrap_or_default(), "asked_by": asked_by.as_deref().unwrap_or_default(),
            })
        })
        .collect();
    json!({
        "run": run.id, "session": run.session, "agent": run.agent, "since": clock::rfc3339(since),
        "working_dir": run.working_dir, "prompt": run.prompt, "calls": calls,
    })
}
