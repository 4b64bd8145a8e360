//! Decides what happens to a call in `kontekst run`.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    cli::{
        error::{CliError, ExitStatus},
        process_env::process_env,
        run::check_tool_name,
    },
    config::{Config, Home},
    core::{Environment, OwnListeners},
    tools::{
        CommandHost, CommandRunner, Effect, Proposal, WorkDir,
        builtin::{self, RUN_COMMAND},
        policy::{CallTarget, Caller, Decision, Policy, PolicyError, PolicyRule, Verdict},
    },
};

/// Decides on calls in one directory.
pub(super) struct Decider {
    work_dir: WorkDir,
    policy: Policy,
    /// `None` if this program cannot be found.
    runner: Option<CommandRunner>,
    config: Config,
    headless: bool,
}

/// A decision, and the reason for it.
pub(super) struct Decided {
    pub(super) decision: Decision,
    pub(super) rule: Option<PolicyRule>,
    /// Says why, if no rule does.
    pub(super) note: Option<String>,
}

impl Decider {
    pub(super) fn new(
        home: &Home,
        config: &Config,
        environment: &Environment,
        dir: &Path,
        caller: &Caller,
    ) -> Result<Self, CliError> {
        let work_dir = WorkDir::new(dir, home).map_err(|error| CliError::usage(error.to_string()))?;
        let policy = Policy::load(home, &config.commands, &work_dir, caller)?;
        let process = process_env(environment);
        let host = CommandHost { launcher: process.launcher, environment: process.environment };
        let runner = CommandRunner::new(&config.commands, &host, home);
        Ok(Self { work_dir, policy, runner, config: config.clone(), headless: caller.headless })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides on a call of a tool that is about `target`.
    pub(super) fn decide(&self, tool: &str, target: Option<&str>) -> Result<Decided, CliError> {
        check_tool_name(tool)?;
        let args = target.map_or(json!({}), |target| match tool {
            RUN_COMMAND => json!({"command": target}),
            "web_fetch" => json!({"url": target}),
            _ => json!({"path": target}),
        });
        let proposal = self.proposal(tool, &args);
        let target = CallTarget::of(tool, &args, proposal.command.as_ref());
        let verdict = self.policy.decide(tool, &target, &self.work_dir);
        let verdict = verdict.with_caution(proposal.caution.as_deref());
        Ok(self.decided(tool, verdict, &proposal))
    }

    /// Returns what the tool says about the call, as far as its target alone says it.
    fn proposal(&self, tool: &str, args: &Value) -> Proposal {
        match (tool, &self.runner, args["command"].as_str()) {
            (RUN_COMMAND, Some(runner), Some(line)) => {
                runner.propose(line, self.config.commands.timeout_seconds, &self.work_dir)
            }
            ("read_file" | "list_files" | "search_files", ..) => {
                let tools = builtin::all(&self.config.tools, &OwnListeners::default());
                let found = tools.iter().find(|found| found.def().name == tool);
                found.map(|tool| tool.propose(args, &self.work_dir)).unwrap_or_default()
            }
            _ => Proposal::default(),
        }
    }

    fn decided(&self, tool: &str, verdict: Verdict, proposal: &Proposal) -> Decided {
        if let Some(decision) = verdict.decision {
            return Decided { decision, rule: verdict.rule, note: verdict.note };
        }
        let is_free = proposal.effect == Effect::Reads || tool == "skill";
        let decision = if is_free { Decision::Allow } else { Decision::Ask };
        let by_default = match decision {
            Decision::Allow => "no rule is about it, and reading below the working directory is free",
            _ if self.headless => "no rule is about it, and without a terminal that means no",
            _ => "no rule is about it",
        };
        Decided {
            decision,
            rule: None,
            note: verdict.note.or(proposal.caution.clone()).or(Some(by_default.to_owned())),
        }
    }
}

impl From<PolicyError> for CliError {
    fn from(error: PolicyError) -> Self {
        Self::from_error(ExitStatus::Usage, &error)
    }
}
