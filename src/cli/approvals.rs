//! `kontekst approvals`: lists the tool calls that wait for a decision, and decides on them.

use std::{io::Write as _, process::ExitCode};

use clap::Subcommand;
use prost_types::Timestamp;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::{
    client::{self, ClientError},
    config::Home,
    core::clock,
    pb::{
        DecideRequest, ListApprovalsRequest, PendingApproval, ProposedToolCall,
        approval_service_client::ApprovalServiceClient,
    },
};

use super::{
    error::CliError,
    json::json_pretty,
    output::to_stdout,
    printable::{PrintableWriter, literal, literal_line},
};

/// List the tool calls that wait for a decision, and decide on them
///
/// A run in a terminal asks there. A run over HTTP with `approval = "ask"` waits here for five minutes. Every
/// other run whose client has not decided yet is listed here, too.
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
    /// List the calls; the default if no command is given
    List,
    /// Approve calls, so that they run
    Approve {
        /// The ids of the calls, which can be shortened
        #[arg(value_name = "CALL", required_unless_present = "all")]
        calls: Vec<String>,
        /// All calls that wait now
        #[arg(long, conflicts_with = "calls")]
        all: bool,
    },
    /// Deny calls, so that they do not run
    Deny {
        /// The ids of the calls, which can be shortened
        #[arg(value_name = "CALL", required_unless_present = "all")]
        calls: Vec<String>,
        /// All calls that wait now
        #[arg(long, conflicts_with = "calls")]
        all: bool,
        /// A reason that the model reads before it continues; without a reason, the run ends
        #[arg(long)]
        reason: Option<String>,
    },
}

/// The user's decision on the chosen calls.
enum Decision {
    Approve,
    /// With a reason, the run continues and the model reads the reason. Without one, the run ends.
    Deny {
        reason: Option<String>,
    },
}

/// The calls that a decision is about.
enum Selection {
    All,
    Ids(Vec<String>),
}

pub(super) fn run(args: Args, home: &Home) -> Result<ExitCode, CliError> {
    let Args { json, command } = args;
    let stream = client::probe(home).map_err(|error| match error {
        ClientError::NotRunning => {
            CliError::unreachable("the daemon is not running, so no call waits for a decision")
        }
        other => other.into(),
    })?;
    let runtime = client::runtime()?;
    let mut service = runtime.block_on(async { client::channel(stream).await.map(client::approvals) })?;
    let pending = runtime.block_on(async {
        Ok::<_, ClientError>(service.list_approvals(ListApprovalsRequest {}).await?.into_inner().approvals)
    })?;
    let select = |calls, all| if all { Selection::All } else { Selection::Ids(calls) };
    let (selection, decision) = match command.unwrap_or(Command::List) {
        Command::List if json => {
            let listed: Vec<Value> = pending.iter().map(to_json).collect();
            return to_stdout(|out, _| Ok(writeln!(out, "{}", json_pretty(&json!({"approvals": listed})))?));
        }
        Command::List => {
            return to_stdout(|out, is_terminal| list(&pending, &mut PrintableWriter::new(out, is_terminal)));
        }
        Command::Approve { calls, all } => (select(calls, all), Decision::Approve),
        Command::Deny { calls, all, reason } => (select(calls, all), Decision::Deny { reason }),
    };
    let chosen = match selection {
        Selection::All => pending.iter().collect(),
        Selection::Ids(ids) => find(&pending, &ids)?,
    };
    let outcomes = runtime.block_on(decide(&mut service, &chosen, &decision))?;
    report(&outcomes, &decision, json)?;
    let late = outcomes.iter().filter(|(_, in_time)| !in_time).count();
    if late > 0 {
        return Err(CliError::failed(format!("{late} of the calls did not wait any more")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends the decision on each call. Returns each call with whether the decision came in time.
async fn decide<'a>(
    service: &mut ApprovalServiceClient<Channel>,
    calls: &[&'a PendingApproval],
    decision: &Decision,
) -> Result<Vec<(&'a PendingApproval, bool)>, ClientError> {
    let reason = match decision {
        Decision::Approve => None,
        Decision::Deny { reason } => reason.clone(),
    };
    let mut outcomes = Vec::new();
    for &pending in calls {
        let request = DecideRequest {
            run_id: pending.run_id.clone(),
            call_id: call_of(pending).call_id,
            approve: matches!(decision, Decision::Approve),
            continue_run: reason.is_some(),
            reason: reason.clone().unwrap_or_default(),
        };
        outcomes.push((pending, service.decide(request).await?.into_inner().taken));
    }
    Ok(outcomes)
}

/// Prints the calls that were decided in time; as JSON, prints all of them.
fn report(
    outcomes: &[(&PendingApproval, bool)],
    decision: &Decision,
    json: bool,
) -> Result<ExitCode, CliError> {
    to_stdout(|out, _| {
        if json {
            let decided = outcomes.iter().map(|(pending, taken)| {
                json!({"call": call_of(pending).call_id, "run": pending.run_id, "taken": taken})
            });
            let decided: Vec<Value> = decided.collect();
            return Ok(writeln!(out, "{}", json_pretty(&json!({"decided": decided})))?);
        }
        let verb = match decision {
            Decision::Approve => "approved",
            Decision::Deny { .. } => "denied",
        };
        for (pending, _) in outcomes.iter().filter(|(_, in_time)| *in_time) {
            let call = call_of(pending);
            writeln!(out, "{verb}  {}  {}", literal_line(&call.call_id), literal_line(&call.name))?;
        }
        Ok(())
    })
}

fn call_of(pending: &PendingApproval) -> ProposedToolCall {
    pending.call.clone().unwrap_or_default()
}

/// Returns the calls that the user named. Each text has to be the beginning of exactly one id.
fn find<'a>(pending: &'a [PendingApproval], texts: &[String]) -> Result<Vec<&'a PendingApproval>, CliError> {
    let mut chosen: Vec<&PendingApproval> = Vec::new();
    for text in texts {
        let mut matching = pending.iter().filter(|one| call_of(one).call_id.starts_with(text.as_str()));
        match (matching.next(), matching.next()) {
            (Some(one), None) if !chosen.iter().any(|known| std::ptr::eq(*known, one)) => chosen.push(one),
            (Some(_), None) => {}
            (Some(_), Some(_)) => {
                return Err(CliError::usage(format!("`{text}` is the beginning of several calls"))
                    .hint("type more characters of the id"));
            }
            (None, _) => {
                return Err(CliError::usage(format!("no call `{text}` waits for a decision"))
                    .hint("run `kontekst approvals` to list the calls"));
            }
        }
    }
    Ok(chosen)
}

/// Lists the calls with their previews, because a person should see what they approve.
fn list(pending: &[PendingApproval], out: &mut PrintableWriter) -> Result<(), CliError> {
    if pending.is_empty() {
        return Ok(writeln!(out, "nothing waits for a decision")?);
    }
    for (index, pending) in pending.iter().enumerate() {
        let call = call_of(pending);
        let since = pending.since_rfc3339.parse().map_or(0, |since: Timestamp| since.seconds);
        let age = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX).saturating_sub(since);
        writeln!(
            out,
            "{}{}  {} {}",
            if index == 0 { "" } else { "\n" },
            literal_line(&call.call_id),
            literal_line(&call.name),
            literal_line(&call.arguments_json)
        )?;
        writeln!(
            out,
            "  run {}, session {}, agent {}, {age} s ago",
            pending.run_id, pending.session_id, pending.agent_name
        )?;
        if !call.caution.is_empty() {
            writeln!(out, "  caution: {}", literal_line(&call.caution))?;
        }
        if !call.asked_by.is_empty() {
            writeln!(out, "  {}", literal_line(&call.asked_by))?;
        }
        for line in literal(&call.preview).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn to_json(pending: &PendingApproval) -> Value {
    let call = call_of(pending);
    json!({
        "call": call.call_id, "run": pending.run_id, "session": pending.session_id, "agent": pending.agent_name,
        "since": pending.since_rfc3339, "tool": call.name,
        "arguments": call.arguments_json, "preview": call.preview, "caution": call.caution,
        "asked_by": call.asked_by,
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
            find(&waiting, &texts.iter().map(ToString::to_string).collect::<Vec<_>>())
                .map(|chosen| chosen.iter().map(|one| call_of(one).call_id).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&["abc", "x", "x"]).unwrap(), ["abc", "x"]);
        assert!(chosen(&["ab"]).unwrap_err().to_string().contains("several"));
        assert!(chosen(&["q"]).unwrap_err().to_string().contains("no call"));
    }
}
