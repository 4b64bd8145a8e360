//! Calls as models write them against what the tools take: what can be run, and as what.

mod coerce;

use serde_json::{Map, Value};

use crate::core::{ToolCall, ToolDef, lenient};

/// A call that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedCall {
    /// The tool's own name.
    pub name: String,
    pub args: Value,
    /// `args` as JSON text: the model's own where nothing had to be mended.
    pub arguments: String,
}

/// Why a call cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCall {
    /// For the model.
    pub reason: String,
    /// The tool that was meant, where there is one: its arguments are what is wrong.
    pub tool: Option<String>,
}

/// Reads a call. What is meant beyond doubt is mended: the spelling of names, slips in the JSON, numbers
/// as text, one value where a list is wanted. What fits the tool's schema after that is sound.
///
/// # Errors
///
/// [`Fault`] for everything else. Nothing may run then.
pub fn check(call: &ToolCall, tools: &[ToolDef]) -> Result<CheckedCall, InvalidCall> {
    let tool = find(&call.name, tools).ok_or_else(|| unknown_tool(&call.name, tools))?;
    let fault = |reason| InvalidCall { reason, tool: Some(tool.name.clone()) };
    let (mut args, mut mended) = parse_object(&call.arguments).map_err(fault)?;
    mended |= coerce::coerce(&mut args, &tool.parameters).map_err(fault)?;
    let arguments = if mended { args.to_string() } else { call.arguments.clone() };
    Ok(CheckedCall { name: tool.name.clone(), args, arguments })
}

/// The tool of that name, or else the only one whose name is the same but for case, `-` and `_`.
fn find<'a>(name: &str, tools: &'a [ToolDef]) -> Option<&'a ToolDef> {
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        return Some(tool);
    }
    let mut alike = tools.iter().filter(|tool| normalized(&tool.name) == normalized(name));
    let tool = alike.next()?;
    alike.next().is_none().then_some(tool)
}

fn normalized(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

fn unknown_tool(name: &str, tools: &[ToolDef]) -> InvalidCall {
    let shown: String = name.chars().take(64).collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let close = similar::get_close_matches(shown.as_str(), &names, 1, 0.7);
    let hint = close.first().map_or_else(String::new, |known| format!("did you mean `{known}`? "));
    let reason = format!("there is no tool `{shown}`; {hint}the tools are: {}", names.join(", "));
    InvalidCall { reason, tool: None }
}

/// The arguments as an object, and whether they had to be mended for that. Nothing counts as `{}`.
fn parse_object(text: &str) -> Result<(Value, bool), String> {
    if text.trim().is_empty() {
        return Ok((Value::Object(Map::new()), true));
    }
    let strict = serde_json::from_str::<Value>(text);
    let value = match &strict {
        Ok(value) => Some(value.clone()),
        Err(_) => lenient(text),
    };
    match value {
        Some(value @ Value::Object(_)) => Ok((value, strict.is_err())),
        // Encoded twice.
        Some(Value::String(inner)) => match serde_json::from_str(&inner).ok().or_else(|| lenient(&inner)) {
            Some(value @ Value::Object(_)) => Ok((value, true)),
            _ => Err("the arguments must be a JSON object".to_owned()),
        },
        Some(_) => Err("the arguments must be a JSON object".to_owned()),
        None => Err(format!(
            "the arguments are not valid JSON: {}",
            strict.err().map_or_else(String::new, |error| error.to_string())
        )),
    }
}

#[cfg(test)]
mod tests;
