//! The examination of a model: requests with names that it has never seen, the reports of their results, and phrasings
//! that a person wrote without knowing the generator.

#[cfg(feature = "engine")]
mod engine;
mod handwritten;
mod own;
mod report;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::data::{Draw, Role, Sample, sample};

#[cfg(feature = "engine")]
pub use engine::InEngine;
pub use handwritten::{Expected, Line, parse, phrasing};
pub use own::Own;
pub use report::{Report, Row};

/// The seed of the held-out requests.
pub const SEED: u64 = 0x6b6f_6e74;
/// Held-out requests that mean a call.
pub const CALLS: usize = 2000;
/// Draws of the generator that a handwritten phrasing is looked for in.
const DRAWS: usize = 400_000;

/// Whoever is examined. It chooses the likeliest byte each time, so that the same model gives the same table.
pub trait Model {
    /// Returns the assistant's next message, without the mark at its end.
    fn answer(&mut self, conversation: &[(Role, String)]) -> String;

    /// The same for many conversations that have nothing to do with each other.
    fn answers(&mut self, conversations: &[&[(Role, String)]]) -> Vec<String> {
        conversations.iter().map(|conversation| self.answer(conversation)).collect()
    }
}

/// The whole examination, with `calls` held-out calls of this `seed` and the lines of the handwritten file.
///
/// # Errors
///
/// The file cannot be read, or a line of it is not understood.
pub fn run(model: &mut dyn Model, calls: usize, seed: u64, file: &Path) -> Result<Report, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = parse(&text)?;
    let mut report = held_out(model, calls, seed);
    handwritten::examine(model, &lines, &handwritten::known(DRAWS), &mut report);
    Ok(report)
}

/// Returns the path of the file with the handwritten phrasings.
pub fn handwritten_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("eval/handwritten.tsv")
}

/// Requests whose names and content words training never draws, until `calls` of them mean a call. Each kind
/// comes as often as in training.
pub fn samples(calls: usize, seed: u64) -> Vec<Sample> {
    let mut draw = Draw::held_out(fastrand::Rng::with_seed(seed));
    let mut samples = Vec::new();
    let mut found = 0;
    while found < calls {
        let sample = sample(&mut draw);
        found += usize::from(sample.call.is_some());
        samples.push(sample);
    }
    samples
}

/// Examines a model on requests and, apart from that, on reports of the results of the right calls.
pub fn held_out(model: &mut dyn Model, calls: usize, seed: u64) -> Report {
    let samples = samples(calls, seed);
    let mut report = Report::default();
    let requests: Vec<_> = samples.iter().map(|sample| &sample.conversation[..1]).collect();
    let said = model.answers(&requests);
    for (sample, said) in samples.iter().zip(&said) {
        let right = match &sample.call {
            Some(call) => called(said) == Said::Call(call.value()),
            None => *said == sample.conversation[1].1,
        };
        let name = sample.call.as_ref().map_or("answered at once", |call| call.name);
        report.request(name, right, &sample.conversation[0].1, &sample.conversation[1].1, said);
    }
    let with_result: Vec<_> = samples.iter().filter(|sample| sample.call.is_some()).collect();
    let conversations: Vec<_> = with_result.iter().map(|sample| &sample.conversation[..3]).collect();
    let said = model.answers(&conversations);
    for (sample, said) in with_result.iter().zip(&said) {
        let (Some(call), right) = (&sample.call, &sample.conversation[3].1) else { continue };
        let failed = right.starts_with("That did not work") || right.starts_with("Nothing was done");
        let name = if failed { "failed or denied" } else { call.name };
        report.result(name, said == right, &sample.conversation[2].1, right, said);
    }
    report
}

/// The class of an answer.
#[derive(Debug, PartialEq)]
pub enum Said {
    Call(Value),
    Text,
    /// It looks like a call and cannot be made.
    Broken,
}

/// Reads a call as kontekst does, but strictly: the JSON as it is, one of the five tools, all it needs and
/// nothing else. A call that stands in a text, as in the report of a file, is text.
pub fn called(said: &str) -> Said {
    if !said.starts_with("<tool_call>") {
        return Said::Text;
    }
    let inner = said.trim().strip_prefix("<tool_call>").and_then(|said| said.strip_suffix("</tool_call>"));
    match inner.and_then(|inner| serde_json::from_str::<Value>(inner).ok()) {
        Some(call) if is_sound(&call) => Said::Call(call),
        _ => Said::Broken,
    }
}

/// Returns true if a call fits the definition of its tool.
fn is_sound(call: &Value) -> bool {
    let (texts, numbers): (&[&str], &[&str]) = match call["name"].as_str() {
        Some("list_files") => (&["pattern"], &[]),
        Some("read_file") => (&["path"], &["start_line", "end_line"]),
        Some("write_file") => (&["path", "content"], &[]),
        Some("edit_file") => (&["path", "old_str", "new_str"], &["occurrence"]),
        Some("web_fetch") => (&["url"], &[]),
        _ => return false,
    };
    let Some(arguments) = call["arguments"].as_object() else { return false };
    texts.iter().all(|name| arguments.get(*name).is_some_and(Value::is_string))
        && numbers.iter().all(|name| arguments.get(*name).is_none_or(Value::is_u64))
        && arguments.keys().all(|name| texts.contains(&name.as_str()) || numbers.contains(&name.as_str()))
}

#[cfg(test)]
mod tests;
