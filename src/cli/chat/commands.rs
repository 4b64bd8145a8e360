//! The commands of the chat. None of them reaches the model.

use std::process::ExitCode;

use super::{
    command::{self, Command},
    header,
    state::{ChatState, Next, note},
};
use crate::{
    cli::{
        error::CliError,
        printable::literal,
        run::{Allowed, percent_used},
        sessions::title_of_fork,
        undo,
    },
    config::{AgentConfig, agents},
    core::{Name, SessionId},
    sessions::Sessions,
};

/// Does what a command says.
///
/// # Errors
///
/// The command could not be done. The chat goes on.
pub(super) fn run(chat: &mut ChatState<'_>, command: Command, arguments: &str) -> Result<Next, CliError> {
    match command {
        Command::Help => note(&help()),
        Command::New => {
            chat.start.session_id.clear();
            note("the next prompt starts a new session");
        }
        Command::Model => model(chat, arguments)?,
        Command::Agent => agent(chat, arguments)?,
        Command::Undo => take_back(chat)?,
        Command::Tokens => note(&tokens(chat)),
        Command::Approve => approve(chat, arguments)?,
        Command::Fork => fork(chat)?,
        Command::Session => session(chat, arguments)?,
        Command::Exit => return Ok(Next::Leave(ExitCode::SUCCESS)),
    }
    Ok(Next::Line)
}

fn help() -> String {
    let names: Vec<String> =
        command::ALL.iter().map(|help| format!("/{} {}", help.name, help.arguments)).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let mut text: String = names
        .iter()
        .zip(command::ALL)
        .map(|(name, help)| format!("  {name:width$}  {}\n", help.does))
        .collect();
    text.push_str(&format!("  {:width$}  run a skill (`kontekst skills` lists them)\n", "/SKILL …"));
    text.push_str(
        "  Alt-Enter, or \\ at the end of a line, begins another line. Tab completes /commands and @files.
  Up, Down and Ctrl-R find earlier prompts. A line that begins with a space is not remembered.
  Ctrl-C stops an answer. What is typed during an answer is shown below it and sent after it.",
    );
    text
}

fn agent(chat: &mut ChatState<'_>, name: &str) -> Result<(), CliError> {
    if name.is_empty() {
        let names = agents::names(chat.home).iter().map(Name::to_string).collect::<Vec<_>>().join(", ");
        note(&format!("{} answers; there are: {names}", header::agent(chat.home, &chat.start)));
        return Ok(());
    }
    let name: Name = name.parse()?;
    AgentConfig::load(chat.home, &name)?;
    chat.start.agent_name = name.to_string();
    note(&format!("agent {name} answers in this chat"));
    Ok(())
}

fn model(chat: &mut ChatState<'_>, name: &str) -> Result<(), CliError> {
    if name.is_empty() {
        let model = header::model(chat.home, &chat.start)?;
        note(&format!(
            "{model} answers; /model NAME lets another one answer, and `kontekst models` lists them"
        ));
        return Ok(());
    }
    name.clone_into(&mut chat.start.model);
    note(&format!("{} answers the next prompts", literal(name)));
    Ok(())
}

/// Goes on in a copy of the session.
fn fork(chat: &mut ChatState<'_>) -> Result<(), CliError> {
    let sessions = Sessions::new(chat.home);
    let id = chat.start.session_id.parse::<SessionId>().ok();
    let listed = sessions.list()?.into_iter().find(|session| Some(&session.id) == id.as_ref());
    let Some(session) = listed else {
        return Err(CliError::usage("there is no conversation to copy yet"));
    };
    let overview = sessions.overviews(std::slice::from_ref(&session)).pop().unwrap_or_default();
    let (copy, messages) = sessions.fork(&session, None, &title_of_fork(&overview))?;
    chat.start.session_id = copy.to_string();
    note(&format!("session {copy} goes on from here, with {messages} messages"));
    Ok(())
}

/// Takes back the last change in this directory, after a question.
fn take_back(chat: &ChatState<'_>) -> Result<(), CliError> {
    if let Some(mode) = &chat.mode {
        mode.set_usual();
    }
    let undone = undo::run(undo::Args::last_in(chat.start.working_dir.clone().into()), chat.home);
    if let Some(mode) = &chat.mode {
        mode.set_quiet();
    }
    undone.map(drop)
}

/// Says how the context window is used, in tokens.
fn tokens(chat: &ChatState<'_>) -> String {
    let Some(context) = chat.sender.context() else {
        return "nothing was answered in this chat yet".to_owned();
    };
    let percent = percent_used(context);
    let mut text = format!(
        "{} of {} tokens of the context window are used ({percent} %): system {}, tools {}, history {}, memory {}",
        context.total_tokens,
        context.context_size,
        context.system_tokens,
        context.tool_tokens,
        context.history_tokens,
        context.memory_tokens,
    );
    if let (Some(prompt), Some(cached)) = (context.prompt_tokens, context.cached_tokens) {
        text.push_str(&format!(
            "\nthe last prompt had {prompt} tokens, {cached} of them from the cache of the server"
        ));
    }
    if let Some(answer) = context.answer_tokens {
        text.push_str(&format!("\nthe last answer had {answer} tokens"));
    }
    text
}

/// Shows what needs no question, or adds to it.
fn approve(chat: &mut ChatState<'_>, values: &str) -> Result<(), CliError> {
    if !values.is_empty() {
        let allowed = Allowed::parse(&split(values))?;
        chat.sender.approver_mut().allow(allowed.tools);
        chat.start.allowed_commands.extend(allowed.commands);
    }
    let (tools, all) = chat.sender.approver_mut().allowed();
    let mut text = if all {
        "every call needs no question, except writes to files that run code or hold settings".to_owned()
    } else {
        "reading and listing files below the directory needs no question".to_owned()
    };
    if !tools.is_empty() {
        text.push_str(&format!("\nthese tools need no question: {}", literal(&tools.join(", "))));
    }
    if !chat.start.allowed_commands.is_empty() {
        let commands = literal(&chat.start.allowed_commands.join("`, `"));
        text.push_str(&format!("\ncommands that begin with these words need none: `{commands}`"));
    }
    text.push_str("\nrules of the policy decide, too: `kontekst policy show` lists them");
    note(&text);
    Ok(())
}

/// Splits at blanks that are not in parentheses: `edit_file run_command(cargo test)` has two parts.
fn split(values: &str) -> Vec<String> {
    let mut depth = 0_i32;
    let parts = values.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth <= 0 && c.is_whitespace()
    });
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Shows the session, or goes on in another one.
fn session(chat: &mut ChatState<'_>, id: &str) -> Result<(), CliError> {
    let sessions = Sessions::new(chat.home);
    if !id.is_empty() {
        chat.start.session_id = sessions.resolve(id)?.to_string();
    }
    match chat.start.session_id.parse::<SessionId>() {
        Err(_) => note("the next prompt starts a new session"),
        Ok(id) if !sessions.exists(&id) => note(&format!("session {id}, which has no message yet")),
        Ok(id) => {
            let count = sessions.entries(&id)?.count();
            note(&format!("session {id}, {count} messages; `kontekst sessions show` prints it"));
        }
    }
    Ok(())
}
