//! Has a model in steps write a file as plain text, after a step that only names it.
//!
//! Small models copy a file with one change in it more reliably than they say as JSON what takes the place of what: a model
//! of 0.5 billion parameters edited 13 of 16 small files rightly in this way, and 4 with calls. The request is a
//! conversation of its own, because with their steps before it these models go on to write JSON.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    core::{CallId, Message, Role, ToolCall, ToolNature},
    provider::{ChatRequest, FinishReason, ToolRole, Turn},
    tools::builtin::{file_exists, readable_text},
};

use super::{
    bridge::blocking,
    generate::{GenerateError, Visibility, add_completion, generate},
    run::Stop,
    run_state::RunState,
};

/// A larger file takes a small model too long, in bytes. It would also begin to leave parts out.
const MAX_FILE: u64 = 6000;
/// A larger file that the request names besides is not shown, in bytes.
const MAX_OTHER: u64 = 3000;
/// A longer request leaves the model no room for the file, in bytes.
const MAX_REQUEST: usize = 8000;
/// The tokens of an answer in addition to those of the file as it is.
const ADDED_TOKENS: u32 = 1200;
/// The end of what a failed check printed that the model reads, in bytes.
const MAX_OUTPUT: usize = 800;
/// The most bytes of results of calls that the model reads.
const MAX_RESULTS: usize = 2000;

const SYSTEM: &str =
    "You write files. Your answer is one block of code with the content of the file, and nothing else.";

/// Returns the argument that the model has not written yet and the path, if the step names a file and lacks its content.
fn planned(run: &RunState, call: &ToolCall) -> Option<(&'static str, String)> {
    let defs = run.tools.all.defs();
    let argument = defs.iter().find(|def| def.name == call.name)?.whole_file?;
    let args: Value = serde_json::from_str(&call.arguments).ok()?;
    let is_missing = args.get(argument).is_none();
    let path = args["path"].as_str().filter(|path| !path.trim().is_empty() && is_missing)?.to_owned();
    Some((argument, path))
}

/// Asks the model for the content of the file, if the only call of the step names one and does not have it. The content is
/// put into the call. A call without it fails, and the model reads why.
pub(super) async fn complete(run: &mut RunState, turn: &mut Turn) -> Result<(), Stop> {
    let [call] = turn.calls.as_slice() else { return Ok(()) };
    let Some((argument, path)) = planned(run, call) else { return Ok(()) };
    if run.ledger.has_just_written(&path) {
        run.offer.note_repeated(&call.name, ToolNature::Changes);
        run.offer.refuse(format!(
            "{path} has just been written. It is not written again before something else is done."
        ));
        return Ok(());
    }
    let Some(file) = read(run, &path).await? else {
        run.offer.offer_edits();
        run.offer.note_repeated(&call.name, ToolNature::Changes);
        run.offer.refuse(format!(
            "{path} is too large to be written anew, or may not be read without a question. Replace a part of it instead."
        ));
        return Ok(());
    };
    let message = file.message();
    let tokens = u32::try_from(file.content.len() / 2).unwrap_or(u32::MAX).saturating_add(ADDED_TOKENS);
    let request = ChatRequest {
        system: Arc::from(SYSTEM),
        tools: Arc::from([]),
        tool_role: ToolRole::Native,
        rescue: false,
        prompt_tokens: 0,
        ..run.request(vec![Message::text(Role::User, message)], tokens)
    };
    let answer = match generate(run, request, Visibility::AsCall).await {
        Ok(answer) => answer,
        Err(GenerateError::Stop(stop)) => return Err(stop),
        Err(GenerateError::Provider(error)) => {
            run.offer.refuse(format!("the content of {path} could not be asked for: {error}"));
            return Ok(());
        }
    };
    let content = match answer.finish_reason {
        FinishReason::Stop => code_block(&answer.content, fence_for(&file.content)),
        FinishReason::Length | FinishReason::Repetition => None,
    };
    match content {
        Some(content) => {
            let content = if content.is_empty() { String::new() } else { format!("{content}\n") };
            let (path_json, content) = (Value::from(path.as_str()), Value::from(content));
            turn.calls[0].arguments = format!("{{\"path\": {path_json}, \"{argument}\": {content}}}");
            run.ledger.note_shown(&path);
        }
        None => run
            .offer
            .refuse(format!("nothing was written: the content of {path} was not one whole block of code")),
    }
    add_completion(turn, &answer);
    Ok(())
}

/// A file that the model is to write.
struct PlannedFile {
    path: String,
    /// The content now, with line feeds. Empty for a file that does not exist.
    content: String,
    exists: bool,
    /// The request without its data.
    request: String,
    /// The data that came with the request.
    data: String,
    /// The results of calls of the run, apart from files that are shown.
    results: Vec<String>,
    /// Other files that the request names, each with its content.
    others: Vec<(String, String)>,
    /// The words for the model about the check that failed.
    failed_check: Option<String>,
}

/// Reads what the model needs to write this file. `None` if it is too large, or may not be read without a question.
async fn read(run: &RunState, path: &str) -> Result<Option<PlannedFile>, Stop> {
    let prompt = run.messages.prompt().filter(|prompt| prompt.content.len() <= MAX_REQUEST);
    let Some(prompt) = prompt.filter(|_| run.tools.reading_is_free) else { return Ok(None) };
    let (request, data) = (prompt.words().trim().to_owned(), prompt.data().trim().to_owned());
    let results = results(run, path);
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
        Some(PlannedFile { path, content, exists, request, data, results, others, failed_check })
    };
    Ok(blocking(reading).join().await?)
}

impl PlannedFile {
    /// Returns the message to the model. The request stands in the last sentence: small models then change what it speaks of, and
    /// nothing else.
    fn message(&self) -> String {
        let Self { path, content, exists, request, data, results, others, failed_check } = self;
        let mut parts: Vec<String> = others.iter().map(|(path, content)| fenced(path, content)).collect();
        parts.extend((!data.is_empty()).then(|| fenced("Data that was piped in", data)));
        parts.extend(results.clone());
        // A model of 0.5 billion parameters writes a program that writes the file, unless the file seems to be there.
        let is_change = *exists || data.is_empty();
        parts.push(if is_change { fenced(path, content) } else { format!("There is no file {path} yet.") });
        parts.extend(failed_check.clone());
        let mut order = format!("Write the whole content of {path} in one block of code");
        order.push_str(match (exists, is_change) {
            (true, _) => ". The only change: ",
            (false, true) => ", with this change: ",
            (false, false) => ", as this request wants it: ",
        });
        order.push_str(request);
        if !others.is_empty() {
            order.push_str(&format!("\nChange only what it says about {path}."));
        }
        if *exists {
            order.push_str("\nKeep everything else as it is.");
        }
        parts.push(order);
        parts.join("\n\n")
    }
}

/// Returns what calls of the run have found, the last ones. Files that the request names are shown without that.
fn results(run: &RunState, path: &str) -> Vec<String> {
    let defs = run.tools.all.defs();
    let finds = |name: &str| {
        let def = defs.iter().find(|def| def.name == name);
        def.is_some_and(|def| {
            matches!(def.nature, ToolNature::Reads | ToolNature::Runs | ToolNature::Fetches)
        })
    };
    let calls: Vec<&ToolCall> = run.messages.since_prompt().flat_map(|message| &message.tool_calls).collect();
    let shows_file = |id: &CallId| {
        let names = |call: &&&ToolCall| {
            let args: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            args["path"]
                .as_str()
                .is_some_and(|read| read == path || run.offer.named.iter().any(|named| named == read))
        };
        calls.iter().find(|call| call.id == *id).filter(names).is_some()
    };
    let results = run.messages.since_prompt().filter_map(|message| message.tool_result.as_ref());
    let results =
        results.filter(|result| !result.is_error && finds(&result.name) && !shows_file(&result.call_id));
    let mut room = MAX_RESULTS;
    let mut found: Vec<String> = Vec::new();
    for result in results.collect::<Vec<_>>().into_iter().rev() {
        room = match room.checked_sub(result.output.len()) {
            Some(room) => room,
            None => break,
        };
        found.insert(0, fenced(&format!("Result of {}", result.name), &result.output));
    }
    found
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
fn fence_for(text: &str) -> &'static str {
    if text.contains("```") { "`````" } else { "```" }
}

/// Returns the first block of code between such fences, without them and without its last line break. `None` if it has no end.
fn code_block<'a>(answer: &'a str, fence: &str) -> Option<&'a str> {
    let is_fence = |line: &str| line.starts_with(fence);
    let start = if is_fence(answer) { 0 } else { answer.find(&format!("\n{fence}"))? + 1 };
    let block = &answer[start..];
    let block = &block[block.find('\n')? + 1..];
    if is_fence(block) {
        return Some("");
    }
    Some(&block[..block.find(&format!("\n{fence}"))?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_is_the_first_whole_block() {
        for (answer, content) in [
            ("```\na\nb\n```", Some("a\nb")),
            ("Here:\n```python\nx = 1\n```\nDone.\n```\ny\n```", Some("x = 1")),
            ("```\n```", Some("")),
            ("```\na", None),
            ("no block", None),
        ] {
            assert_eq!(code_block(answer, "```"), content, "{answer}");
        }
        assert_eq!(code_block("`````md\n```\nx\n```\n`````", fence_for("```")), Some("```\nx\n```"));
    }

    #[test]
    fn the_model_reads_the_file_and_the_request_last() {
        let file = PlannedFile {
            path: "a.txt".to_owned(),
            content: "one\n".to_owned(),
            exists: true,
            request: "Say two.".to_owned(),
            data: "d".to_owned(),
            results: vec!["Result of x:".to_owned()],
            others: vec![("b.txt".to_owned(), "b\n".to_owned())],
            failed_check: Some(check_in_words("make", "red\n")),
        };
        let text = file.message();
        let start = "b.txt:\n```\nb\n```\n\nData that was piped in:\n```\nd\n```\n\nResult of x:\n\na.txt:\n```\none\n```\n\nThe check \
                     `make` fails now.";
        assert!(
            text.starts_with(start)
                && text.contains("The only change: Say two.\nChange only what it says about a.txt.\nKeep"),
            "{text}"
        );
        let new = PlannedFile { exists: false, content: String::new(), failed_check: None, ..file };
        assert!(new.message().contains("There is no file a.txt yet.\n\nWrite the whole content of a.txt"));
        let alone = PlannedFile { data: String::new(), others: Vec::new(), ..new };
        assert!(alone.message().ends_with("a.txt:\n```\n```\n\nWrite the whole content of a.txt in one block of code, with this change: Say two."));
    }
}
