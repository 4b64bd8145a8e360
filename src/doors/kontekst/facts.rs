//! The facts of a run as messages.

use crate::{agent::protocol::RunFacts, core::CommandFacts, pb};

impl From<RunFacts> for pb::RunFactsEvent {
    fn from(facts: RunFacts) -> Self {
        let RunFacts { changed_files, commands, is_complete } = facts;
        Self {
            changed_files,
            commands: commands.into_iter().map(Into::into).collect(),
            complete: is_complete,
        }
    }
}

impl From<CommandFacts> for pb::RanCommand {
    fn from(command: CommandFacts) -> Self {
        Self { line: command.line, exit_status: command.exit_status }
    }
}
