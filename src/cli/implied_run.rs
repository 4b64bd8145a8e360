//! A command line without a command: `kontekst "what is a daemon"` asks, as `kontekst run` does.

use std::ffi::OsString;

use clap::{CommandFactory as _, Subcommand as _};

use super::{Cli, Command, error::CliError};
use crate::core::nearest;

/// The first words that clap itself understands.
const OF_CLAP: [&str; 5] = ["help", "-h", "--help", "-V", "--version"];

/// Puts `run` before a command line that has no command: one that begins with a prompt, which is an argument with white
/// space in it, or with an option of `run`.
///
/// # Errors
///
/// The first word is no command and no prompt. The error names the nearest command.
pub(super) fn with_implied_run(mut args: Vec<OsString>) -> Result<Vec<OsString>, CliError> {
    let Some(first) = args.get(1).map(|first| first.to_string_lossy().into_owned()) else { return Ok(args) };
    if OF_CLAP.contains(&&*first) || Command::has_subcommand(&first) {
        return Ok(args);
    }
    if !first.starts_with('-') && !first.trim().contains(char::is_whitespace) {
        let command = Cli::command();
        let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
        let near = nearest(&first, commands.map(clap::Command::get_name));
        return Err(CliError::usage(format!("there is no command `{first}`"))
            .maybe_hint(near.map(|name| format!("did you mean `kontekst {name}`?")))
            .hint(format!("to ask about it, run `kontekst run {}`", as_prompt(&args[1..])))
            .hint("`kontekst --help` lists the commands"));
    }
    args.insert(1, "run".into());
    Ok(args)
}

/// Returns what to type for words that were meant as one prompt: in quotes up to the first option, and the rest as it was.
fn as_prompt(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let end = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let (prompt, options) = words.split_at(end);
    let prompt = prompt.join(" ");
    let quoted = if prompt.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", prompt.replace('\'', "'\\''"))
    } else {
        format!("\"{prompt}\"")
    };
    std::iter::once(quoted).chain(options.iter().cloned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str]) -> String {
        let args = ["kontekst"].iter().chain(words).map(OsString::from).collect();
        match with_implied_run(args) {
            Ok(args) => args[1..].join("|".as_ref()).into_string().unwrap(),
            Err(error) => error.hints.first().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn a_prompt_or_an_option_without_a_command_means_run() {
        for (words, expect) in [
            (&[][..], ""),
            (&["what is a daemon"], "run|what is a daemon"),
            (&["a\nb", "--json"], "run|a\nb|--json"),
            (&["-q", "what is it"], "run|-q|what is it"),
            (&["--agent", "coder", "hi"], "run|--agent|coder|hi"),
            (&["--", "hi"], "run|--|hi"),
            (&["--version"], "--version"),
            (&["help", "run"], "help|run"),
            (&["status"], "status"),
            (&["run", "status quo"], "run|status quo"),
            (&["rnu", "hi there"], "did you mean `kontekst run`?"),
            (&["session"], "did you mean `kontekst sessions`?"),
            (&["weather"], "to ask about it, run `kontekst run \"weather\"`"),
            (
                &["what", "is a daemon", "--json"],
                "to ask about it, run `kontekst run \"what is a daemon\" --json`",
            ),
            (&["what's", "$5"], "to ask about it, run `kontekst run 'what'\\''s $5'`"),
            (&[" x "], "to ask about it, run `kontekst run \" x \"`"),
        ] {
            assert_eq!(check(words), expect, "{words:?}");
        }
    }
}
