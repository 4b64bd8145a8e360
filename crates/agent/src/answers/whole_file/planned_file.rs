//! A file that a model in steps is to write, and what the model reads for it.

use std::sync::Arc;

use serde_json::Value;

use kontekst_core::{CallId, Role, ToolCall, ToolNature};
use kontekst_tools::builtin::{file_exists, readable_text};

use crate::{
    run::{Stop, blocking},
    state::RunState,
};

/// A larger file takes a small model too long, in bytes. It would also begin to leave parts out.
const MAX_FILE: u64 = 6000;
/// A larger file that the request names besides is not shown, in bytes.
const MAX_OTHER: u64 = 3000;
/// A longer request leaves the model no room for the file, in bytes.
const MAX_REQUEST: usize = 8000;
/// The end of what a failed check printed that the model reads, in bytes.
const MAX_OUTPUT: usize = 800;
/// The most bytes of results of calls that the model reads.
const MAX_RESULTS: usize = 2000;
/// The messages before the request that the model reads, and the most bytes of each.
const EARLIER: usize = 3;
const MAX_EARLIER: usize = 500;

/// A file that the model is to write.
pub(crate) struct PlannedFile {
    path: String,
    /// The content now, with line feeds. Empty for a file that does not exist.
    pub(crate) content: String,
    exists: bool,
    /// The request without its data.
    request: String,
    /// The data that came with the request.
    data: String,
    /// The end of the conversation before the request.
    earlier: Vec<String>,
    /// The results of calls of the run, apart from files that are shown.
    results: Vec<String>,
    /// Other files that the request names, each with its content.
    others: Vec<(String, String)>,
    /// The words for the model about the check that failed.
    failed_check: Option<String>,
}

/// Reads what the model needs to write this file. `None` if it is too large, or may not be read without a question.
pub(crate) async fn read(run: &RunState, path: &str) -> Result<Option<PlannedFile>, Stop> {
    let prompt = run.messages.prompt().filter(|prompt| prompt.content.len() <= MAX_REQUEST);
    let Some(prompt) = prompt.filter(|_| run.tools.reading_is_free) else { return Ok(None) };
    let (request, data) = (prompt.words().trim().to_owned(), prompt.data().trim().to_owned());
    let (earlier, results) = (earlier(run), results(run, path));
    let (work_dir, path) = (Arc::clone(&run.tools.work_dir), path.to_owned());
    let named = run.offer.named.clone();
    let failed_check = run.checks.failed.as_ref().map(|(command, output)| check_in_words(command, output));
    let reading = move || {
        let exists = file_exists(&work_dir, &path);
        let content = if exists { readable_text(&work_dir, &path, MAX_FILE)? } else { String::new() };
        let read = |other: String| Some((readable_text(&work_dir, &other, MAX_OTHER)?, other));
        let others = named.into_iter().filter(|other| *other != path).filter_map(read);
        let others = others.map(|(content, other)| (other, content)).collect();
        // The mark stays where it is, because the tool keeps it.
        let content = content.trim_start_matches('\u{FEFF}').replace("\r\n", "\n");
        Some(PlannedFile { path, content, exists, request, data, earlier, results, others, failed_check })
    };
    Ok(blocking(reading).join().await?)
}

impl PlannedFile {
    /// Returns the message to the model. The request stands in the last sentence: small models then change what it speaks of, and
    /// nothing else.
    pub(crate) fn message(&self) -> String {
        let Self { path, content, exists, request, data, earlier, results, others, failed_check } = self;
        let mut parts = earlier.clone();
        parts.extend(others.iter().map(|(path, content)| fenced(path, content)));
        parts.extend((!data.is_empty()).then(|| fenced("Data that was piped in", data)));
        parts.extend(results.clone());
        // A model of 0.5 billion parameters writes a program that writes the file, unless the file seems to be there.
        let is_change = *exists || data.is_empty();
        parts.push(if is_change { fenced(path, content) } else { format!("There is no file {path} yet.") });
        parts.extend(failed_check.clone());
        let mut order = format!("Write the whole content of {path} in one block of code, ");
        order.push_str(if is_change { "with this change: " } else { "as this request wants it: " });
        order.push_str(request);
        if !others.is_empty() {
            order.push_str(&format!("\nChange only what it says about {path}."));
        }
        if *exists {
            order.push_str("\nKeep all other lines as they are.");
        }
        parts.push(order);
        parts.join("\n\n")
    }
}

/// Returns the end of the conversation before the request, which may say what "the same" or "yes" means.
fn earlier(run: &RunState) -> Vec<String> {
    let texts = run.messages.before_prompt().filter_map(|message| {
        let (who, text) = match message.role {
            Role::User => ("The user said before", message.words()),
            Role::Assistant => ("You said before", message.content.as_str()),
            _ => return None,
        };
        let text = text.trim();
        let text = &text[..text.floor_char_boundary(MAX_EARLIER)];
        (message.tool_result.is_none() && !text.is_empty()).then(|| format!("{who}: {text}"))
    });
    let texts: Vec<String> = texts.collect();
    texts[texts.len().saturating_sub(EARLIER)..].to_vec()
}

/// Returns what calls of the run have found, the last ones. Files that are shown anyway are left out.
fn results(run: &RunState, path: &str) -> Vec<String> {
    let defs = run.tools.all.defs();
    let finds = |name: &str| {
        let nature = defs.iter().find(|def| def.name == name).map(|def| def.nature);
        matches!(nature, Some(ToolNature::Reads | ToolNature::Runs | ToolNature::Fetches))
    };
    let shown = |call: &&ToolCall| {
        let args: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        args["path"]
            .as_str()
            .is_some_and(|read| read == path || run.offer.named.iter().any(|named| named == read))
    };
    let calls = run.messages.since_prompt().flat_map(|message| &message.tool_calls);
    let shown: Vec<&CallId> = calls.filter(shown).map(|call| &call.id).collect();
    let results = run.messages.since_prompt().filter_map(|message| message.tool_result.as_ref());
    let results =
        results.filter(|result| !result.is_error && finds(&result.name) && !shown.contains(&&result.call_id));
    let mut room = MAX_RESULTS;
    let last = results.collect::<Vec<_>>().into_iter().rev().map_while(|result| {
        room = room.checked_sub(result.output.len())?;
        Some(fenced(&format!("Result of {}", result.name), &result.output))
    });
    let mut last: Vec<String> = last.collect();
    last.reverse();
    last
}

/// Returns what the model reads about a check that failed: the end of what it printed.
fn check_in_words(command: &str, output: &str) -> String {
    let output = output.trim_end();
    let end = &output[output.ceil_char_boundary(output.len().saturating_sub(MAX_OUTPUT))..];
    let fence = fence_for(end);
    format!("The check `{command}` fails now. It prints:\n{fence}\n{end}\n{fence}")
}

fn fenced(path: &str, content: &str) -> String {
    let fence = fence_for(content);
    let end = if content.is_empty() { "" } else { "\n" };
    format!("{path}:\n{fence}\n{}{end}{fence}", content.trim_end_matches('\n'))
}

/// Returns a fence that does not occur in the text.
pub(crate) fn fence_for(text: &str) -> &'static str {
    if text.contains("```") { "`````" } else { "```" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_reads_the_file_and_the_request_last() {
        let file = PlannedFile {
            path: "a.txt".to_owned(),
            content: "one\n".to_owned(),
            exists: true,
            request: "Say two.".to_owned(),
            data: "d".to_owned(),
            earlier: vec!["The user said before: hi".to_owned()],
            results: vec!["Result of x:".to_owned()],
            others: vec![("b.txt".to_owned(), "b\n".to_owned())],
            failed_check: Some(check_in_words("make", "red\n")),
        };
        let text = file.message();
        let start = "The user said before: hi\n\nb.txt:\n```\nb\n```\n\nData that was piped in:\n```\nd\n```\n\nResult of x:\n\na.txt:\n```\none\n```\n\nThe check \
                     `make` fails now.";
        assert!(
            text.starts_with(start)
                && text.contains("with this change: Say two.\nChange only what it says about a.txt.\nKeep"),
            "{text}"
        );
        let new = PlannedFile { exists: false, content: String::new(), failed_check: None, ..file };
        assert!(new.message().contains("There is no file a.txt yet.\n\nWrite the whole content of a.txt"));
        let alone = PlannedFile { data: String::new(), others: Vec::new(), ..new };
        assert!(alone.message().ends_with("a.txt:\n```\n```\n\nWrite the whole content of a.txt in one block of code, with this change: Say two."));
    }
}
