//! A run that is over as one JSON object, for `--output json`. `docs/run-output.schema.json` describes it.

use serde::Serialize;
use serde_json::Value;

use crate::cli::{
    error::{CliError, ExitStatus},
    event_json::{SCHEMA_VERSION, nothing_changed, plain},
    json::json_line,
};

use super::{CallOutcome, CallReport, DeniedCall, RunReport, Usage};

#[derive(Serialize)]
struct RunResult<'a> {
    r#type: &'static str,
    schema_version: u32,
    /// `None` if the run has not started, as the next two.
    session_id: Option<&'a str>,
    run_id: Option<&'a str>,
    agent: Option<&'a str>,
    model: Option<&'a str>,
    ending: &'static str,
    /// The name for `kontekst approvals`, if the run is parked.
    parked_run_id: Option<&'a str>,
    exit_code: u8,
    error: Option<RunErrorJson<'a>>,
    answer: Option<&'a str>,
    usage: UsageJson,
    tool_calls: Vec<CallJson<'a>>,
    denied_calls: Vec<DeniedJson<'a>>,
    /// `None` if the run has not started.
    files_changed: Option<&'a [String]>,
    /// The run has certainly changed nothing.
    nothing_changed: bool,
    /// The command lines that the model has run.
    commands: Vec<Value>,
    checks: Vec<CheckJson<'a>>,
    checks_passed: Option<bool>,
}

#[derive(Serialize)]
struct RunErrorJson<'a> {
    message: &'a str,
    causes: &'a [String],
    hints: &'a [String],
}

#[derive(Serialize)]
struct UsageJson {
    turns: u32,
    prompt_tokens: Option<i64>,
    cached_tokens: Option<i64>,
    completion_tokens: Option<i64>,
}

#[derive(Serialize)]
struct CallJson<'a> {
    call_id: &'a str,
    name: &'a str,
    arguments_json: &'a str,
    outcome: &'static str,
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct DeniedJson<'a> {
    call_id: &'a str,
    name: &'a str,
    arguments_json: &'a str,
    worker_id: Option<&'a str>,
    reason: Option<&'a str>,
    caution: Option<&'a str>,
}

#[derive(Serialize)]
struct CheckJson<'a> {
    command: &'a str,
    round: u32,
    passed: bool,
    summary: &'a str,
}

impl RunReport {
    /// Formats the run as one line of JSON, safe for a terminal. `signal` is the one that has interrupted it.
    pub(in crate::cli::run) fn to_json_line(
        &self,
        usage: &Usage,
        error: Option<&CliError>,
        signal: Option<u8>,
    ) -> String {
        let exit_code = match (error, signal) {
            (Some(error), _) => error.status.code(),
            (None, Some(signal)) => 128 + signal,
            (None, None) => 0,
        };
        let facts = self.facts.as_ref();
        json_line(&RunResult {
            r#type: "result",
            schema_version: SCHEMA_VERSION,
            session_id: non_empty(&self.session_id),
            run_id: non_empty(&self.run_id),
            agent: non_empty(&self.agent),
            model: non_empty(&self.model),
            ending: self.ending(error, signal),
            parked_run_id: non_empty(&self.parked_run_id),
            exit_code,
            error: error.map(RunErrorJson::new),
            answer: self.answer.as_deref(),
            usage: UsageJson::new(usage),
            tool_calls: self.calls.iter().map(CallJson::new).collect(),
            denied_calls: self.denied.iter().map(DeniedJson::new).collect(),
            files_changed: facts.map(|facts| &*facts.changed_files).or(self.calls.is_empty().then_some(&[])),
            nothing_changed: facts.is_none_or(nothing_changed),
            commands: facts.iter().flat_map(|facts| &facts.commands).map(plain).collect(),
            checks: self.checks.iter().map(CheckJson::new).collect(),
            checks_passed: self.checks_passed,
        })
    }

    /// Returns the name of the reason for which the run has ended.
    fn ending(&self, error: Option<&CliError>, signal: Option<u8>) -> &'static str {
        if signal.is_some() || self.is_cancelled {
            return "cancelled";
        }
        match error.map(|error| error.status) {
            None => "completed",
            Some(ExitStatus::Usage) => "invalid_request",
            Some(ExitStatus::NeedsApproval) => "needs_approval",
            Some(ExitStatus::Denied) => "denied",
            Some(ExitStatus::Limit) => "limit",
            Some(ExitStatus::Unreachable) => "unreachable",
            Some(ExitStatus::Interrupted | ExitStatus::Terminated) => "cancelled",
            Some(ExitStatus::Failed | ExitStatus::OutputClosed) => "failed",
        }
    }
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

impl<'a> RunErrorJson<'a> {
    fn new(error: &'a CliError) -> Self {
        Self { message: &error.message, causes: &error.causes, hints: &error.hints }
    }
}

impl UsageJson {
    fn new(usage: &Usage) -> Self {
        Self {
            turns: usage.turns,
            prompt_tokens: usage.prompt,
            cached_tokens: usage.cached,
            completion_tokens: usage.completion,
        }
    }
}

impl<'a> CallJson<'a> {
    fn new(report: &'a CallReport) -> Self {
        let outcome = match report.outcome {
            CallOutcome::Completed => "completed",
            CallOutcome::Failed => "failed",
            CallOutcome::Denied => "denied",
            CallOutcome::Unfinished => "unfinished",
        };
        Self {
            call_id: &report.call.call_id,
            name: &report.call.name,
            arguments_json: &report.call.arguments_json,
            outcome,
            error: non_empty(&report.error),
        }
    }
}

impl<'a> DeniedJson<'a> {
    fn new(denied: &'a DeniedCall) -> Self {
        Self {
            call_id: &denied.call.call_id,
            name: &denied.call.name,
            arguments_json: &denied.call.arguments_json,
            worker_id: non_empty(&denied.call.worker_id),
            reason: non_empty(&denied.reason),
            caution: non_empty(&denied.call.caution),
        }
    }
}

impl<'a> CheckJson<'a> {
    fn new(check: &'a kontekst_pb::CheckEvent) -> Self {
        Self { command: &check.command, round: check.round, passed: check.passed, summary: &check.summary }
    }
}
