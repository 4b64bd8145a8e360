//! `kontekst approvals`: decide on tool calls of runs that were started elsewhere.

use std::{
    io::Write as _,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::Subcommand;
use prost_types::Timestamp;
use serde_json::{Value, json};

use crate::{
    client::{self, ClientError},
    config::Home,
    pb::{DecideRequest, ListApprovalsRequest, PendingApproval, ProposedToolCall},
};

use super::{
    error::CliError,
    on_stdout,
    printable::{PrintableWriter, literal},
};

/// List tool calls that wait for a decision, and decide on them
///
/// A run in a terminal asks there. Runs over HTTP with `approval = "ask"` wait here, for five minutes;
/// so does every other run whose own client has not decided yet.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kontekst approvals
  kontekst approvals approve 7f3a
  kontekst approvals deny 7f3a --reason \"use the other file\"")]
pub(super) struct Args {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the calls (what `approvals` alone does)
    List,
    /// Let calls run
    Approve {
        /// Ids of calls, or the beginnings of them
        #[arg(value_name = "CALL", required_unless_present = "all")]
        calls: Vec<String>,
        /// All that wait now
        #[arg(long, conflicts_with = "calls")]
        all: bool,
    },
    /// Do not let calls run
    Deny {
        /// Ids of calls, or the beginnings of them
        #[arg(value_name = "CALL", required_unless_present = "all")]
        calls: Vec<String>,
        /// All that wait now
        #[arg(long, conflicts_with = "calls")]
        all: bool,
        /// What the model reads; it goes on then, and without a reason the run ends
        #[arg(long)]
        reason: Option<String>,
    },
}

pub(super) fn run(args: Args, home: &Home) -> Result<ExitCode, CliError> {
    let Args { json, command } = args;
    let stream = client::probe(home).map_err(|error| match error {
        ClientError::NotRunning => CliError::unreachable("the daemon is not running, so nothing waits"),
        other => other.into(),
    })?;
    let runtime = client::runtime()?;
    let mut approvals = runtime.block_on(async { client::channel(stream).await.map(client::approvals) })?;
    let waiting = runtime.block_on(async {
        Ok::<_, ClientError>(approvals.list_approvals(ListApprovalsRequest {}).await?.into_inner().approvals)
    })?;
    let (calls, all, approve, reason) = match command.unwrap_or(Command::List) {
        Command::List if json => {
            let listed: Vec<Value> = waiting.iter().map(to_json).collect();
            return on_stdout(|out, _| Ok(writeln!(out, "{:#}", json!({"approvals": listed}))?));
        }
        Command::List => {
            return on_stdout(|out, terminal| list(&waiting, &mut PrintableWriter::new(out, terminal)));
        }
        Command::Approve { calls, all } => (calls, all, true, None),
        Command::Deny { calls, all, reason } => (calls, all, false, reason),
    };
    let chosen = if all { waiting.iter().collect() } else { select(&waiting, &calls)? };
    let mut decided = Vec::new();
    for pending in chosen {
        let request = DecideRequest {
            run_id: pending.run_id.clone(),
            call_id: call_of(pending).call_id.clone(),
            approve,
            continue_run: reason.is_some(),
            reason: reason.clone().unwrap_or_default(),
        };
        let taken = runtime
            .block_on(async { Ok::<_, ClientError>(approvals.decide(request).await?.into_inner().taken) })?;
        decided.push((pending, taken));
    }
    let late = decided.iter().filter(|(_, taken)| !taken).count();
    on_stdout(|out, _| {
        if json {
            let shown: Vec<Value> = decided
                .iter()
                .map(|(pending, taken)| json!({"call": call_of(pending).call_id, "run": pending.run_id, "taken": taken}))
                .collect();
            return Ok(writeln!(out, "{:#}", json!({"decided": shown}))?);
        }
        for (pending, _) in decided.iter().filter(|(_, taken)| *taken) {
            let call = call_of(pending);
            let did = if approve { "approved" } else { "denied" };
            writeln!(out, "{did}  {}  {}", one_line(&call.call_id), one_line(&call.name))?;
        }
        Ok(())
    })?;
    if late > 0 {
        return Err(CliError::failed(format!("{late} of the calls did not wait any more")));
    }
    Ok(ExitCode::SUCCESS)
}

fn call_of(pending: &PendingApproval) -> ProposedToolCall {
    pending.call.clone().unwrap_or_default()
}

/// The calls that are meant: each text is the beginning of exactly one id.
fn select<'a>(
    waiting: &'a [PendingApproval],
    texts: &[String],
) -> Result<Vec<&'a PendingApproval>, CliError> {
    let mut chosen: Vec<&PendingApproval> = Vec::new();
    for text in texts {
        let mut fits = waiting.iter().filter(|pending| call_of(pending).call_id.starts_with(text.as_str()));
        match (fits.next(), fits.next()) {
            (Some(one), None) if !chosen.iter().any(|known| std::ptr::eq(*known, one)) => chosen.push(one),
            (Some(_), None) => {}
            (Some(_), Some(_)) => {
                return Err(CliError::usage(format!("`{text}` is the beginning of several calls"))
                    .hint("type more of it"));
            }
            (None, _) => {
                return Err(CliError::usage(format!("no call `{text}` waits"))
                    .hint("`kontekst approvals` lists them"));
            }
        }
    }
    Ok(chosen)
}

/// Each call with what it would do: nobody approves what they have not seen.
fn list(waiting: &[PendingApproval], out: &mut PrintableWriter) -> Result<(), CliError> {
    if waiting.is_empty() {
        return Ok(writeln!(out, "nothing waits for a decision")?);
    }
    for (at, pending) in waiting.iter().enumerate() {
        let call = call_of(pending);
        let since = pending.since_rfc3339.parse().map_or(0, |since: Timestamp| since.seconds);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let age = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(since);
        writeln!(
            out,
            "{}{}  {} {}",
            if at == 0 { "" } else { "\n" },
            one_line(&call.call_id),
            one_line(&call.name),
            one_line(&call.arguments_json)
        )?;
        writeln!(
            out,
            "  run {}, session {}, agent {}, {age} s ago",
            pending.run_id, pending.session_id, pending.agent_name
        )?;
        if !call.caution.is_empty() {
            writeln!(out, "  caution: {}", one_line(&call.caution))?;
        }
        for line in literal(&call.preview).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    literal(text).replace('\n', "\\n")
}

fn to_json(pending: &PendingApproval) -> Value {
    let call = call_of(pending);
    json!({
        "call": call.call_id, "run": pending.run_id, "session": pending.session_id, "agent": pending.agent_name,
        "since": pending.since_rfc3339, "tool": call.name,
        "arguments": call.arguments_json, "preview": call.preview, "caution": call.caution,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_the_beginning_of_its_id() {
        let pending = |id: &str| PendingApproval {
            call: Some(ProposedToolCall { call_id: id.to_owned(), ..ProposedToolCall::default() }),
            ..PendingApproval::default()
        };
        let waiting = [pending("abc"), pending("abd"), pending("x")];
        let chosen = |texts: &[&str]| {
            select(&waiting, &texts.iter().map(ToString::to_string).collect::<Vec<_>>())
                .map(|chosen| chosen.iter().map(|one| call_of(one).call_id).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&["abc", "x", "x"]).unwrap(), ["abc", "x"]);
        assert!(chosen(&["ab"]).unwrap_err().to_string().contains("several"));
        assert!(chosen(&["q"]).unwrap_err().to_string().contains("no call"));
    }
}
