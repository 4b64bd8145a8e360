//! Parses calls in the forms that models write, between tags or without any.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

use crate::{core::parse_lenient, provider::chat::ParsedCall};

#[derive(Deserialize)]
struct RawCall<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, alias = "parameters")]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<&'a RawValue>,
    /// Present in the definition of a tool, never in a call.
    #[serde(default)]
    description: Option<IgnoredAny>,
}

/// Parses one call, a list of calls, or several calls after each other, all in JSON. Returns `None` if any value is not
/// a call.
pub(super) fn calls_in_json(text: &str) -> Option<Vec<ParsedCall>> {
    strict(text).or_else(|| match parse_lenient(text)? {
        Value::Array(list) => list.iter().map(call_from_value).collect(),
        value => call_from_value(&value).map(|found| vec![found]),
    })
}

fn strict(text: &str) -> Option<Vec<ParsedCall>> {
    let mut calls = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let value = value.ok()?.get();
        if value.starts_with('[') {
            for value in serde_json::from_str::<Vec<&RawValue>>(value).ok()? {
                calls.push(call_from_raw(value.get(), true)?);
            }
        } else {
            calls.push(call_from_raw(value, true)?);
        }
    }
    (!calls.is_empty()).then_some(calls)
}

/// Parses one JSON object. If `outer` is true, the call may also be nested in its field `function`.
fn call_from_raw(text: &str, outer: bool) -> Option<ParsedCall> {
    let written: RawCall<'_> = serde_json::from_str(text).ok()?;
    if written.description.is_some() {
        return None;
    }
    match (written.name, written.function) {
        (Some(name), None) => {
            let arguments = written.arguments.map(RawValue::get);
            Some(ParsedCall { name: name.into_owned(), arguments: arguments_text(arguments)? })
        }
        (None, Some(function)) if outer => call_from_raw(function.get(), false),
        _ => None,
    }
}

/// Returns the JSON text of an object, or the text in a string, because some models encode the arguments twice.
fn arguments_text(arguments: Option<&str>) -> Option<String> {
    match arguments {
        None | Some("null") => Some("{}".to_owned()),
        Some(text) if text.starts_with('"') => serde_json::from_str(text).ok(),
        Some(text) if text.starts_with('{') => Some(text.to_owned()),
        Some(_) => None,
    }
}

fn call_from_value(value: &Value) -> Option<ParsedCall> {
    let object = match value.get("function") {
        Some(Value::Object(function)) => function,
        _ => value.as_object()?,
    };
    if object.contains_key("description") {
        return None;
    }
    let name = object.get("name")?.as_str()?.to_owned();
    let arguments = match object.get("arguments").or_else(|| object.get("parameters")) {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(arguments @ Value::Object(_)) => arguments.to_string(),
        Some(_) => return None,
    };
    Some(ParsedCall { name, arguments })
}

/// Parses the call `<function=NAME>BODY</function>`. The body is JSON, or `<parameter=KEY>VALUE</parameter>` as Qwen's
/// coder models write it.
pub(super) fn call_in_function(name: &str, body: &str) -> Option<ParsedCall> {
    let (name, body) = (name.trim().trim_matches('"'), body.trim());
    let arguments = match body.as_bytes().first() {
        None => "{}".to_owned(),
        Some(b'{') => body.to_owned(),
        Some(_) => Value::Object(parameters(body)?).to_string(),
    };
    (!name.is_empty()).then(|| ParsedCall { name: name.to_owned(), arguments })
}

fn parameters(mut body: &str) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    while !body.is_empty() {
        let (key, rest) = body.strip_prefix("<parameter=")?.split_once('>')?;
        let (value, rest) = rest.split_once("</parameter>")?;
        // A value may stand on lines of its own. The line breaks around it are not part of it.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        map.insert(key.trim().to_owned(), Value::String(value.to_owned()));
        body = rest.trim_start();
    }
    Some(map)
}

/// Parses the body of `<tool_call>`.
pub(super) fn calls_in_tag(body: &str) -> Option<Vec<ParsedCall>> {
    let body = body.trim();
    if let Some(function) = body.strip_prefix("<function=") {
        let (name, rest) = function.split_once('>')?;
        let inner = rest.trim_end();
        return call_in_function(name, inner.strip_suffix("</function>").unwrap_or(inner))
            .map(|found| vec![found]);
    }
    calls_in_json(fenced(body)).or_else(|| unparsable_call(body).map(|found| vec![found]))
}

/// Removes a code fence around the whole body.
fn fenced(body: &str) -> &str {
    let inner = body.strip_prefix("```").and_then(|body| body.strip_suffix("```"));
    inner.map_or(body, |inner| inner.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim())
}

/// Returns a call whose arguments are invalid, so that the model can be told about the error.
fn unparsable_call(body: &str) -> Option<ParsedCall> {
    let after = |text: &'_ str, key: &str| {
        let rest = &text[text.find(key)? + key.len()..];
        Some(rest.trim_start().strip_prefix(':')?.trim_start().to_owned())
    };
    let name = after(body, "\"name\"")?;
    let name = name.strip_prefix('"')?.split_once('"')?.0.to_owned();
    let arguments = after(body, "\"arguments\"").or_else(|| after(body, "\"parameters\""))?;
    // The last bracket belongs to the object around the arguments.
    let arguments = arguments.trim_end();
    let arguments = arguments.strip_suffix('}').unwrap_or(arguments).to_owned();
    Some(ParsedCall { name, arguments })
}

/// Parses what follows `[TOOL_CALLS]`: a list of calls, or a name and an object as newer Mistral models write it.
pub(super) fn calls_in_mistral(body: &str) -> Option<Vec<ParsedCall>> {
    let body = body.trim();
    if body.starts_with(['[', '{']) {
        return calls_in_json(body);
    }
    let at = body.find('{')?;
    let name = body[..at].trim();
    let name = name.strip_suffix("[ARGS]").unwrap_or(name);
    Some(vec![ParsedCall { name: name.to_owned(), arguments: body[at..].to_owned() }])
}
