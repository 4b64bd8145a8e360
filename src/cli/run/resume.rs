//! Goes on with a parked run, and shows it as `kontekst run` does.

use std::process::ExitCode;

use prost::Message as _;

use kontekst_core::Environment;
use kontekst_pb::{ResumeOptions, StartRunCommand};
use kontekst_store::{config::Home, parked::ParkedRun};

use crate::cli::{
    approver::{Approver, OnDeny, ParkedDecision, Policy, Terminal},
    error::CliError,
};

use super::{
    connection::{RunSender, changed},
    renderer::View,
};

/// Goes on with a parked run until its end, and returns its exit code.
///
/// # Errors
///
/// The run did not do what it was asked to do, or waits again.
pub(in crate::cli) fn resume(
    parked: &ParkedRun,
    decision: ParkedDecision,
    view: View,
    home: &Home,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let mut renderer = view.renderer(environment);
    let mut start = StartRunCommand::decode(&*parked.settings.0).map_err(|error| {
        CliError::failed("the settings of the parked run cannot be read").cause(error.to_string())
    })?;
    let options = start.park.take().unwrap_or_default();
    let policy = Policy {
        auto_approve: options.auto_approve,
        allowed_tools: options.allowed_tools.into_iter().collect(),
        on_deny: OnDeny::End,
    };
    parked.session.as_str().clone_into(&mut start.session_id);
    parked.agent.clone_into(&mut start.agent_name);
    start.headless = Terminal::open().is_none();
    start.resume = Some(ResumeOptions { run_id: parked.id.to_string(), parked_at_unix_ms: parked.parked_at });
    let palette = renderer.console().palette();
    let mut approver = Approver::new(policy, palette, environment).with_parked(decision);
    approver.park_unasked(&mut start);
    let mut sender = RunSender::new(home, renderer, approver)?;
    let result = sender.send(&start).and_then(|ending| {
        let code = sender.connection.exit_code(&ending);
        let changed = sender.connection.approver.unasked().and_then(|call| changed(call, parked));
        code.map_err(|error| changed.unwrap_or(error))
    });
    sender.exit(result)
}
