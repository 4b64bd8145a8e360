//! The schema that an answer is decoded under.

use serde_json::{Value, json, value::RawValue};

use kontekst_core::{ToolChoice, ToolDef};

use crate::StepOptions;

/// The step that ends the task. A client's tool of this name is not offered in steps.
pub(crate) const ANSWER: &str = "answer";

/// The step that ends the task with a list of the files that were changed.
pub const DONE: &str = "done";

/// The step that asks for the tools that are withheld.
pub const MORE: &str = "more_tools";

/// The member of a step that names the tool.
pub(super) const TOOL: &str = "tool";

/// The beginning of every step. An engine that writes it for the model makes the name of the tool come first.
#[cfg(feature = "builtin")]
pub(crate) const STEP_START: &str = "{\"tool\": \"";

/// Returns true if some of these tools can be called in steps.
pub(crate) fn can_call(tools: &[ToolDef]) -> bool {
    tools.iter().any(|tool| members(tool).is_some())
}

/// Returns the `response_format` that makes the server accept only a step that may be taken now: a call of one of
/// `tools`, or an answer.
///
/// Source: OpenAI's API. llama-server, vLLM, Ollama and LM Studio implement it.
pub(crate) fn response_format(
    tools: &[ToolDef],
    choice: &ToolChoice,
    options: &StepOptions,
) -> Box<RawValue> {
    let format = format!(
        r#"{{"type":"json_schema","json_schema":{{"name":"step","strict":true,"schema":{}}}}}"#,
        step_schema(tools, choice, options)
    );
    RawValue::from_string(format).expect("its parts are JSON")
}

/// Returns the schema as JSON text. A server decodes members in the order of the text, so `tool` comes first and
/// required arguments follow in the order of the tool's definition.
///
/// The choice of a client counts before the tools that are withheld. There is always an alternative: where no tool may be
/// called, an answer is one.
pub(crate) fn step_schema(tools: &[ToolDef], choice: &ToolChoice, options: &StepOptions) -> String {
    let is_offered = |tool: &&ToolDef| match choice {
        ToolChoice::Auto => !options.withheld_tools.contains(&tool.name),
        ToolChoice::Required => true,
        ToolChoice::None => false,
        ToolChoice::Function(name) => tool.name == *name,
    };
    let may_answer = matches!(choice, ToolChoice::Auto | ToolChoice::None);
    let mut alternatives: Vec<String> =
        tools.iter().filter(is_offered).filter_map(tool_alternative).collect();
    let is_free = |name: &str| *choice == ToolChoice::Auto && tools.iter().all(|tool| tool.name != name);
    if options.more && is_free(MORE) {
        alternatives.push(alternative(MORE, &[], &[]));
    }
    if options.done && is_free(DONE) {
        let (files, text) =
            (json!({"type": "array", "items": {"type": "string"}}), json!({"type": "string"}));
        alternatives.push(alternative(DONE, &[("changed", &files), ("text", &text)], &["changed", "text"]));
    }
    if alternatives.is_empty() || may_answer {
        alternatives.push(alternative(ANSWER, &[("text", &json!({"type": "string"}))], &["text"]));
    }
    format!(r#"{{"anyOf":[{}]}}"#, alternatives.join(","))
}

fn tool_alternative(tool: &ToolDef) -> Option<String> {
    let members = members(tool)?;
    let required: Vec<&str> =
        members.iter().filter(|member| member.required).map(|member| member.name).collect();
    let properties: Vec<(&str, &Value)> = members.iter().map(|member| (member.name, member.schema)).collect();
    Some(alternative(&tool.name, &properties, &required))
}

fn alternative(name: &str, properties: &[(&str, &Value)], required: &[&str]) -> String {
    let mut text = format!(r#"{{"type":"object","properties":{{"{TOOL}":{{"const":{}}}"#, quoted(name));
    for (name, schema) in properties {
        text.push_str(&format!(",{}:{schema}", quoted(name)));
    }
    text.push_str(&format!(r#"}},"required":["{TOOL}""#));
    for name in required {
        text.push_str(&format!(",{}", quoted(name)));
    }
    text.push_str(r#"],"additionalProperties":false}"#);
    text
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// An argument of a tool.
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
    pub(super) required: bool,
}

/// Returns the arguments of a tool, the required ones first. Returns `None` for a tool that cannot be called in steps,
/// because it has an argument with the name that steps use, or the name of the last step. The content of a whole file is written
/// apart from the step.
pub(super) fn members(tool: &ToolDef) -> Option<Vec<Member<'_>>> {
    let properties = tool.parameters["properties"].as_object();
    if tool.name == ANSWER || properties.is_some_and(|properties| properties.contains_key(TOOL)) {
        return None;
    }
    let required: Vec<&str> =
        tool.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_in_step = |name: &str| tool.whole_file != Some(name);
    let find = |name: &&str| properties?.get_key_value(*name);
    let mut members: Vec<Member<'_>> = required
        .iter()
        .filter(|name| is_in_step(name))
        .filter_map(find)
        .map(|(name, schema)| Member { name, schema, required: true })
        .collect();
    let optional = properties.into_iter().flatten().filter(|(name, _)| !required.contains(&name.as_str()));
    let optional = optional.filter(|(name, _)| is_in_step(name));
    members.extend(optional.map(|(name, schema)| Member { name, schema, required: false }));
    Some(members)
}
