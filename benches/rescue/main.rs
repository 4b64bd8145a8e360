//! Counts the calls that are found in text: the calls of the Berkeley Function Calling Leaderboard, written in each wrapper.
//!
//!     pip download --no-deps bfcl-eval && python3 -m zipfile -e bfcl_eval-*.whl bfcl
//!     cargo bench --bench rescue -- bfcl/bfcl_eval/data
//!
//! A call counts as found if it is the only one in the answer, no text is left of it, and its arguments are those of the
//! call without a wrapper. Calls that do not fit their own schema are left out. The questions of all cases, which have no
//! call, count false calls. The data is not part of this repository; its licence is Apache-2.0.

#![expect(clippy::print_stdout, reason = "it is what a bench is for")]

mod cases;
mod wrappers;

use std::{error::Error, path::Path};

use kontekst_core::{CallId, ToolCall, ToolDef};
use kontekst_provider::calls_in_text;
use kontekst_tools::schema::check;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench`.
    let Some(folder) = std::env::args().skip(1).find(|argument| argument != "--bench") else {
        println!("no folder given; benches/rescue/main.rs says how to get the data");
        return Ok(());
    };
    let cases = cases::read(Path::new(&folder))?;
    let mut calls = Vec::new();
    let (mut given, mut questions, mut false_calls) = (0, 0, 0);
    for case in &cases {
        given += case.calls.len();
        for (name, arguments) in &case.calls {
            if let Some(expected) = checked(name, &arguments.to_string(), &case.tools) {
                calls.push((case, name, expected));
            }
        }
        for question in &case.questions {
            questions += 1;
            let found = calls_in_text(&case.tools, question).1.len();
            false_calls += found;
            if found > 0 && std::env::var_os("KONTEKST_SHOW_MISSED").is_some() {
                println!("false call: {question}");
            }
        }
    }
    println!("{given} calls, {} of which fit their own schema\n", calls.len());
    println!("| wrapper | found | % |\n|---|---|---|");
    let mut all = 0;
    for (wrapper, write) in wrappers::ALL {
        let mut missed = None;
        let mut found = 0;
        for (case, name, expected) in &calls {
            let text = write(name, expected);
            if is_found(&text, name, expected, &case.tools) {
                found += 1;
            } else {
                missed = missed.or(Some(text));
            }
        }
        all += found;
        println!("| {wrapper} | {found} | {:.2} |", percent(found, calls.len()));
        if let Some(missed) = missed.filter(|_| std::env::var_os("KONTEKST_SHOW_MISSED").is_some()) {
            println!("missed: {missed}");
        }
    }
    println!("| all | {all} | {:.2} |", percent(all, calls.len() * wrappers::ALL.len()));
    println!("\n{questions} questions, {false_calls} false calls");
    Ok(())
}

fn is_found(text: &str, name: &str, expected: &Value, tools: &[ToolDef]) -> bool {
    let (rest, found) = calls_in_text(tools, text);
    let [(found_name, arguments)] = found.as_slice() else { return false };
    let known = tools.iter().any(|tool| tool.name == name);
    known && rest.trim().is_empty() && checked(found_name, arguments, tools).as_ref() == Some(expected)
}

/// Returns the arguments as the tool would get them.
fn checked(name: &str, arguments: &str, tools: &[ToolDef]) -> Option<Value> {
    let call = ToolCall { id: CallId::local(), name: name.to_owned(), arguments: arguments.to_owned() };
    Some(check(&call, tools).ok()?.args)
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
