//! Validates chat requests as a strict server does.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns an error that says what is wrong with the body of a chat request.
pub(super) fn chat(body: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(what.to_owned());
    if body["model"].as_str().is_none_or(str::is_empty) {
        return wrong("no model");
    }
    if body["max_tokens"].as_u64().is_none_or(|limit| limit == 0) {
        return wrong("max_tokens is not a positive number");
    }
    if body["stream"] != true || body["stream_options"]["include_usage"] != true {
        return wrong("not streamed with usage: such a request cannot be cancelled reliably");
    }
    tools(&body["tools"])?;
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        return wrong("no messages");
    };
    for (at, message) in messages.iter().enumerate() {
        let before = at.checked_sub(1).map_or(&Value::Null, |before| &messages[before]);
        self::message(message, before, &messages[at + 1..])
            .map_err(|what| format!("messages[{at}]: {what}"))?;
    }
    if messages[0]["role"] == "tool" { wrong("messages[0]: a result without a call") } else { Ok(()) }
}

fn tools(tools: &Value) -> Result<(), String> {
    let mut names = BTreeSet::new();
    match tools {
        Value::Null => Ok(()),
        Value::Array(tools) if tools.is_empty() => Err("tools is empty".to_owned()),
        Value::Array(tools) => tools.iter().try_for_each(|tool| {
            let name = tool["function"]["name"].as_str().filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| format!("a tool without a name: {tool}"))?;
            if tool["type"] != "function" || tool["function"]["parameters"]["type"] != "object" {
                return Err(format!("tool `{name}` has no parameters of type object"));
            }
            if names.insert(name) { Ok(()) } else { Err(format!("two tools are named `{name}`")) }
        }),
        _ => Err("tools is not a list".to_owned()),
    }
}

fn message(message: &Value, before: &Value, after: &[Value]) -> Result<(), String> {
    let role = message["role"].as_str().unwrap_or("");
    match &message["content"] {
        Value::String(_) => {}
        Value::Array(parts) if role == "user" && !parts.is_empty() => parts.iter().try_for_each(part)?,
        _ => return Err("content is not text".to_owned()),
    }
    if role != "tool" && before["role"] == role {
        return Err(format!("two messages of role {role} in a row"));
    }
    match role {
        "system" if before.is_null() => Ok(()),
        "system" => Err("a system message that is not the first".to_owned()),
        "user" => Ok(()),
        "assistant" => calls(message, after),
        "tool" if message["tool_call_id"].as_str().is_none_or(str::is_empty) => {
            Err("a result without tool_call_id".to_owned())
        }
        "tool" if before["role"] == "tool" || before["tool_calls"].is_array() => Ok(()),
        "tool" => Err("a result that follows no call".to_owned()),
        _ => Err(format!("role `{role}`")),
    }
}

fn part(part: &Value) -> Result<(), String> {
    match part["type"].as_str() {
        Some("text") if part["text"].as_str().is_some_and(|text| !text.is_empty()) => Ok(()),
        Some("image_url") => {
            let url = part["image_url"]["url"].as_str().unwrap_or("");
            let is_image = url.starts_with("data:image/") && url.contains(";base64,");
            if is_image { Ok(()) } else { Err(format!("an image that is none: {url}")) }
        }
        _ => Err(format!("a part of no known type: {part}")),
    }
}

/// Checks that the calls are valid, and that each has exactly one result after it, as role `tool` or as text.
fn calls(message: &Value, after: &[Value]) -> Result<(), String> {
    let calls = match &message["tool_calls"] {
        Value::Null if message["content"] == "" => return Err("says nothing and calls nothing".to_owned()),
        Value::Null => return Ok(()),
        calls => {
            calls.as_array().filter(|calls| !calls.is_empty()).ok_or("tool_calls is empty or no list")?
        }
    };
    let mut open = BTreeSet::new();
    for call in calls {
        let id = call["id"].as_str().filter(|id| !id.is_empty()).ok_or("a call without an id")?;
        call["function"]["name"].as_str().filter(|name| !name.is_empty()).ok_or("a call without a name")?;
        let arguments = call["function"]["arguments"].as_str().ok_or("arguments that are not text")?;
        match serde_json::from_str::<Value>(arguments) {
            Ok(Value::Object(_)) => {}
            _ => return Err(format!("arguments that are not a JSON object: {arguments}")),
        }
        if !open.insert(id) {
            return Err(format!("two calls have the id `{id}`"));
        }
    }
    let results: Vec<_> = after.iter().take_while(|message| message["role"] == "tool").collect();
    if results.is_empty() {
        return as_text(calls, after.first().unwrap_or(&Value::Null));
    }
    for result in results {
        let id = result["tool_call_id"].as_str().unwrap_or("");
        if !open.remove(id) {
            return Err(format!("a result for `{id}`, which is no open call"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("calls without a result: {open:?}")) }
}

fn as_text(calls: &[Value], next: &Value) -> Result<(), String> {
    let text = next["content"].as_str().filter(|_| next["role"] == "user").unwrap_or("");
    for call in calls {
        let name = call["function"]["name"].as_str().unwrap_or("");
        if !text.contains(&format!("Tool: {name}\n\nResult:\n")) {
            return Err(format!("no result for the call of `{name}`"));
        }
    }
    Ok(())
}
