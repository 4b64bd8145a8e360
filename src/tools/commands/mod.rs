//! Command lines: which commands they run, which of them need no question, and how they are run.

mod allowed_file;
mod environment;
mod line;
mod named;
mod new_names;
mod output;
mod preview;
mod removal;
mod rules;
mod runner;

pub use runner::{CommandHost, CommandJob, CommandResult, CommandRunner};

use crate::{
    config::{CommandApproval, PathError},
    tools::{CommandPreview, Proposal, WorkDir, tree},
};
use rules::Rule;

impl CommandRunner {
    /// Describes a line for a person, and says whether it needs an approval. `allowed` are the first words of commands that
    /// need none, in addition to those of the configuration and of the directory.
    pub(super) fn propose(
        &self,
        line: &str,
        seconds: u64,
        allowed: &[String],
        work_dir: &WorkDir,
    ) -> Proposal {
        let read = line::read(line);
        let not_covered = tree::not_covered(work_dir).note();
        let confinement = format!("{}, at most {seconds} s.{not_covered}", self.confinement());
        let preview = preview::preview(line, read.as_ref().map_err(|reason| *reason), &confinement);
        let named = match &read {
            Ok(read) if self.takes_back() && !rules::only_reads(read) => named::new_names(read, work_dir),
            _ => Vec::new(),
        };
        let caution = match (&read, self.unconfined(), named.first()) {
            (Err(reason), ..) => Some(format!("what the line runs is not known: {reason}")),
            (Ok(_), Some(missing), _) => Some(format!("the sandbox is not complete: {missing}")),
            (Ok(_), None, Some((path, reason))) => {
                Some(format!("{path} {reason} (a protected name), and an approval lets the command write it"))
            }
            (Ok(_), None, None) => None,
        };
        let Ok(read) = read else {
            return Proposal {
                preview,
                caution,
                command: Some(CommandPreview::default()),
                ..Proposal::default()
            };
        };
        let rules = self.rules(allowed, work_dir);
        let is_allowed = rules::allow(&rules, &read)
            || (self.approval() == CommandApproval::Sandboxed && self.is_sealed());
        let command = CommandPreview {
            allowed: is_allowed && caution.is_none(),
            only_reads: rules::only_reads(&read),
            names: named.into_iter().map(|(path, _)| path).collect(),
            prefixes: if caution.is_some() { Vec::new() } else { rules::prefixes(&rules, &read) },
        };
        Proposal { preview, caution, command: Some(command), ..Proposal::default() }
    }

    fn rules(&self, allowed: &[String], work_dir: &WorkDir) -> Vec<Rule> {
        let of_directory =
            work_dir.real_path().map(|dir| allowed_file::rules(self.home(), dir)).unwrap_or_default();
        let all = self.configured().iter().chain(allowed).chain(&of_directory);
        all.filter_map(|rule| Rule::parse(rule)).collect()
    }

    /// Allows commands with these first words in the directory from now on.
    pub(super) fn allow(&self, prefixes: &[String], work_dir: &WorkDir) -> Result<(), PathError> {
        match work_dir.real_path() {
            Some(dir) => allowed_file::add(self.home(), dir, prefixes),
            None => Ok(()),
        }
    }
}
