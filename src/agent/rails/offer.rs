//! Chooses the tools that are of no use in a run, so that a model that works in steps cannot call them.

use super::{
    change_request::{
        asks_about_data, asks_only_for_an_answer, has_word, is_file_name, needs_command, request_text,
    },
    file_changes::CHANGING_TOOLS,
};
use crate::{
    core::{Message, Role},
    tools::builtin::RUN_COMMAND,
};

const WEB_FETCH: &str = "web_fetch";

/// The words of a request that wants something from the network, in lower case.
const NETWORK: [&str; 10] =
    ["web", "website", "site", "homepage", "internet", "online", "url", "link", "download", "fetch"];

/// The words of a request that wants something to be run, in lower case.
const RUNNING: [&str; 22] = [
    "run", "rerun", "execute", "test", "tests", "build", "builds", "compile", "compiles", "install",
    "command", "commands", "script", "shell", "lint", "git", "commit", "cargo", "npm", "pytest", "starte",
    "teste",
];

/// The tools that read files of the working directory.
pub(super) const READING_TOOLS: [&str; 3] = ["read_file", "list_files", "search_files"];

/// The tools that a run has no use for.
pub(in crate::agent) struct Offer {
    is_on: bool,
    answers_only: bool,
    /// The answer is in the data that came with the request. Small models search the files for it.
    is_about_data: bool,
    /// The request or the agent speaks of something to run. Small models run a command where they should change a file.
    runs_commands: bool,
    /// An address stands in the conversation, or is likely to be needed. Stays true.
    has_address: bool,
}

impl Offer {
    /// `prompt` is what the user wrote, and `system` the text of the agent.
    pub(super) fn new(is_on: bool, prompt: &str, system: &str) -> Self {
        let request = &*request_text(prompt);
        let names_network = has_word(request, &NETWORK);
        let runs_commands =
            has_word(request, &RUNNING) || has_word(system, &RUNNING) || needs_command(prompt);
        let has_address = names_network || has_url(system) || request.split_whitespace().any(is_host);
        Self {
            is_on,
            answers_only: asks_only_for_an_answer(request),
            is_about_data: asks_about_data(prompt),
            runs_commands,
            has_address,
        }
    }

    /// Withholds the tools that change files.
    pub(super) fn only_for_an_answer(&mut self) {
        self.answers_only = true;
    }

    /// Returns the names of tools that may not be called now. `conversation` is what the model sees.
    pub(super) fn withheld<'a>(
        &mut self,
        mut conversation: impl Iterator<Item = &'a Message>,
    ) -> Vec<&'static str> {
        if !self.is_on {
            return Vec::new();
        }
        // An address that the model wrote itself does not count: it may have made it up.
        self.has_address = self.has_address
            || conversation.any(|message| match &message.tool_result {
                Some(result) => has_url(&result.output),
                None => message.role == Role::User && has_url(&message.with_context()),
            });
        let changing = CHANGING_TOOLS.into_iter().filter(|_| self.answers_only);
        changing
            .chain(READING_TOOLS.into_iter().filter(|_| self.is_about_data))
            .chain(Some(RUN_COMMAND).filter(|_| !self.runs_commands))
            .chain(Some(WEB_FETCH).filter(|_| !self.has_address))
            .collect()
    }
}

/// Returns true if the text has an address with a scheme, or one of the usual names of hosts.
fn has_url(text: &str) -> bool {
    text.contains("://") || text.contains("www.") || text.contains("localhost") || has_usual_host(text)
}

/// Looks only at the words with a dot before the end of a usual name, because the text may be all that the model sees.
fn has_usual_host(mut text: &str) -> bool {
    let separates = |c: char| c.is_whitespace() || "\"'`<>()[],;".contains(c);
    while let Some(dot) = memchr::memchr_iter(b'.', text.as_bytes()).find(|&dot| begins_usual(&text[dot..])) {
        let (before, after) = text.split_at(dot);
        let start = before.rfind(separates).unwrap_or(0);
        let end = dot + after.find(separates).unwrap_or(after.len());
        let word = text[start..end].trim_start_matches(separates);
        if is_host(word) && USUAL.iter().any(|end| has_domain(word, end)) {
            return true;
        }
        text = &text[end..];
    }
    false
}

/// Returns true if a text that begins with a dot begins with the end of a usual name.
fn begins_usual(text: &str) -> bool {
    let begins = |end: &str| text.get(..end.len()).is_some_and(|start| start.eq_ignore_ascii_case(end));
    text.as_bytes().get(1).is_some_and(u8::is_ascii_alphabetic) && USUAL.iter().any(|end| begins(end))
}

/// The ends of the names of most hosts.
const USUAL: [&str; 10] = [".com", ".org", ".net", ".io", ".dev", ".de", ".uk", ".eu", ".info", ".edu"];

fn has_domain(word: &str, end: &str) -> bool {
    let host = word.split(['/', ':']).next().unwrap_or(word);
    host.to_lowercase().trim_end_matches('.').ends_with(end)
}

/// Returns true for "example.com", "example.com/a" and "10.0.0.1:80", but not for the name of a file.
fn is_host(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    if word.contains("://") || word.starts_with("localhost") {
        return true;
    }
    let host = word.split(['/', ':']).next().unwrap_or(word);
    let labels: Vec<&str> = host.split('.').collect();
    let Some(last) = labels.last() else { return false };
    labels.len() > 1
        && labels
            .iter()
            .all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-'))
        && (labels.len() == 4 || (last.len() > 1 && last.chars().all(char::is_alphabetic)))
        && !is_file_name(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_default_agent_ask_for_no_command() {
        let system = "You are a helpful assistant that runs on the user's own machine, in the directory the user works \
                      in. Answer in plain text for a terminal.";
        assert!(!Offer::new(true, "Raise the limit to 20 MB.", system).runs_commands);
        assert!(
            Offer::new(true, "Raise the limit to 20 MB.", "After a change, run `make check`.").runs_commands
        );
        assert!(Offer::new(true, "Make the tests pass", system).runs_commands);
        assert!(Offer::new(true, "Delete the file a.py", system).runs_commands);
    }

    #[test]
    fn addresses_are_found_and_names_of_files_are_not() {
        for request in [
            "fetch the page",
            "read https://a.b/c",
            "visit example.com and tell me",
            "see example.museum/x",
            "ask 10.0.0.1:80",
            "what does localhost:8080 say?",
        ] {
            assert!(Offer::new(true, request, "").has_address, "{request}");
        }
        for request in
            ["what is in a.txt?", "set the version to 1.2 in src/main.rs", "e.g. this", "rename a.py to b.py"]
        {
            assert!(!Offer::new(true, request, "").has_address, "{request}");
        }
        assert!(!has_url(&".".repeat(100_000)) && has_url("a.b, (example.com) c"));
        assert!(has_url("A.B.EXAMPLE.Com.") && has_url("a.comma, example.com") && !has_url("a.comma.b"));
        assert!(!has_url(&".com_".repeat(100_000)));
        assert!(has_url("see www.x") && has_url("at example.com/a") && !has_url("os.path.join(a.b)"));
    }
}
