//! Parses the calls in the body of a wrapper. The form of the body decides who reads it, and not the wrapper, because models
//! and templates mix them.

mod json;
mod markup;
mod named;
mod python;

use super::wrappers;
use crate::chat::ParsedCall;

/// The deepest nesting of wrappers that is read.
const MAX_DEPTH: usize = 4;

/// Parses what stands between `open` and its closing tag. Returns `None` if anything of it is not a call.
pub(super) fn calls_in(open: &str, body: &str) -> Option<Vec<ParsedCall>> {
    // DeepSeek puts this in front of the name of each tag.
    calls_at(open, &body.replace("｜DSML｜", ""), MAX_DEPTH)
}

/// Parses an answer that is nothing but calls: in JSON, as in Python, or as a name and an object.
pub(super) fn calls_without_wrapper(text: &str) -> Option<Vec<ParsedCall>> {
    let text = text.trim();
    json::calls_in_json(text).or_else(|| python::calls(text)).or_else(|| Some(vec![named::call(text)?]))
}

/// Returns a call whose arguments are invalid, so that the model can be told about the error.
pub(super) fn unparsable_call(body: &str) -> Option<ParsedCall> {
    json::unparsable_call(body)
}

fn calls_at(open: &str, body: &str, depth: usize) -> Option<Vec<ParsedCall>> {
    let depth = depth.checked_sub(1)?;
    if open.starts_with('<') && open.ends_with('=') {
        let (name, body) = body.split_once('>')?;
        return Some(vec![markup::call(name, body)?]);
    }
    let mut calls = Vec::new();
    let mut rest = unfenced(body.trim());
    while let Some((open, inner, after)) = wrappers::split_nested(rest) {
        calls.extend(calls_at(open, inner, depth)?);
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        let with_tags =
            |rest: &str| Some(vec![markup::keys_and_values(rest).filter(|_| open == "<tool_call>")?]);
        calls.extend(calls_without_wrapper(rest).or_else(|| with_tags(rest))?);
    }
    (!calls.is_empty()).then_some(calls)
}

/// Removes a code fence around the body. The end of the fence may be missing.
fn unfenced(body: &str) -> &str {
    let Some(inner) = body.strip_prefix("```") else { return body };
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '_');
    inner.strip_suffix("```").unwrap_or(inner).trim()
}
