//! The facts of a run as messages.

use kontekst_agent::protocol::RunFacts;
use kontekst_core::CommandFacts;
use kontekst_pb as pb;

pub(super) fn facts_event(facts: RunFacts) -> pb::RunFactsEvent {
    let RunFacts { changed_files, commands, is_complete } = facts;
    let commands = commands.into_iter().map(ran_command).collect();
    pb::RunFactsEvent { changed_files, commands, complete: is_complete }
}

fn ran_command(command: CommandFacts) -> pb::RanCommand {
    pb::RanCommand { line: command.line, exit_status: command.exit_status }
}
