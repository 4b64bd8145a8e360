//! The policy: what rules decide about calls, in the library and with the real binary.

mod files;
mod lines;
mod precedence;
mod question;
mod random;
mod rules;
mod runs;

use std::{fs, path::PathBuf};

use kontekst_store::config::{CommandsConfig, Config, Home, SandboxMode};
use kontekst_tools::{
    CommandHost, CommandRunner, Proposal, WorkDir,
    policy::{CallTarget, Caller, Policy, PolicyError, Verdict},
};
use serde_json::json;

/// A data directory and a working directory with files of a policy.
struct TestPolicy {
    dir: tempfile::TempDir,
    /// The working directory, if it is not `work`.
    work_dir: Option<PathBuf>,
    caller: Caller,
    commands: CommandsConfig,
}

impl TestPolicy {
    /// Writes the user's file.
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let commands = CommandsConfig { sandbox: SandboxMode::Off, ..CommandsConfig::default() };
        let policy = Self { dir, work_dir: None, caller: Caller::default(), commands };
        Config::load(&policy.home()).unwrap();
        fs::create_dir(policy.work_dir()).unwrap();
        policy.write_user(text);
        policy
    }

    fn headless(mut self) -> Self {
        self.caller.headless = true;
        self
    }

    fn home(&self) -> Home {
        Home::find(Some(self.root().join("home"))).unwrap()
    }

    /// Returns the directory above all others, without links.
    #[expect(clippy::disallowed_methods, reason = "the name is compared, and nothing is opened by it")]
    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn work_dir(&self) -> PathBuf {
        self.work_dir.clone().unwrap_or_else(|| self.root().join("work"))
    }

    /// Writes a file below the working directory.
    fn write(&self, name: &str, text: &str) {
        let path = self.work_dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn write_user(&self, text: &str) {
        let text = text.replace("$WORK", self.work_dir().to_str().unwrap());
        fs::write(self.home().policy(), text).unwrap();
    }

    fn write_project(&self, text: &str) {
        self.write(".kontekst/policy.toml", text);
    }

    fn load(&self) -> Result<(Policy, WorkDir), PolicyError> {
        let work_dir = WorkDir::new(&self.work_dir(), &self.home()).unwrap();
        let policy = Policy::load(&self.home(), &self.commands, &work_dir, &self.caller)?;
        Ok((policy, work_dir))
    }

    fn proposal(&self, work_dir: &WorkDir, line: &str) -> Proposal {
        let host = CommandHost { launcher: Some("/bin/false".into()), ..CommandHost::default() };
        CommandRunner::new(&self.commands, &host, &self.home()).unwrap().propose(line, 9, work_dir)
    }

    /// Returns the rules that the answer `a` would write about a line.
    fn rules_of_always(&self, line: &str) -> Vec<String> {
        let (policy, work_dir) = self.load().unwrap();
        policy.prefixes(&self.proposal(&work_dir, line).command.unwrap())
    }

    /// Decides on a call that is written as `TOOL` or `TOOL(TARGET)`.
    fn verdict(&self, call: &str) -> Verdict {
        let (policy, work_dir) = self.load().unwrap();
        self.verdict_of(&policy, &work_dir, call)
    }

    fn verdict_of(&self, policy: &Policy, work_dir: &WorkDir, call: &str) -> Verdict {
        let (tool, target) = match call.split_once('(') {
            Some((tool, target)) => (tool, target.strip_suffix(')')),
            None => (call, None),
        };
        let line = target.filter(|_| tool == "run_command");
        let proposal = line.map(|line| self.proposal(work_dir, line)).unwrap_or_default();
        let args = json!({"path": target, "url": target, "command": target});
        let target = CallTarget::of(tool, &args, proposal.command.as_ref());
        policy.decide(tool, &target, work_dir).with_caution(proposal.caution.as_deref())
    }

    /// Returns the decision on a call: `allow`, `ask`, `deny`, or `-` if no rule counts.
    fn decide(&self, call: &str) -> &'static str {
        name(&self.verdict(call))
    }

    /// Compares decisions on calls. Each line is a decision and a call.
    #[track_caller]
    fn check(&self, expected: &str) {
        let calls = expected.lines().map(str::trim).filter(|line| !line.is_empty());
        let wrong: Vec<String> = calls
            .filter_map(|line| {
                let (expected, call) = line.split_once(' ').unwrap();
                let decided = self.decide(call.trim());
                (decided != expected).then(|| format!("{line}: {decided} ({:?})", self.verdict(call.trim())))
            })
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Returns the decisions on several calls.
    fn decide_all(&self, calls: &[String]) -> Vec<&'static str> {
        let (policy, work_dir) = self.load().unwrap();
        calls.iter().map(|call| name(&self.verdict_of(&policy, &work_dir, call))).collect()
    }

    /// Returns the message about a file with a mistake.
    #[track_caller]
    fn error(&self) -> String {
        self.load().err().expect("the file has a mistake").to_string()
    }
}

fn name(verdict: &Verdict) -> &'static str {
    verdict.decision.map_or("-", kontekst_tools::policy::Decision::as_str)
}
