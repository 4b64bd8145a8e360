//! The cases of the leaderboard: tools, questions, and the calls that answer them.

use std::{collections::HashMap, error::Error, fs, path::Path};

use kontekst_core::ToolDef;
use serde_json::{Map, Value, json};

/// One case.
pub(crate) struct Case {
    pub tools: Vec<ToolDef>,
    pub questions: Vec<String>,
    /// The name and the arguments of each call.
    pub calls: Vec<(String, Value)>,
}

/// Reads all cases that bring their tools with them.
pub(crate) fn read(folder: &Path) -> Result<Vec<Case>, Box<dyn Error>> {
    let mut answers = HashMap::new();
    for line in lines(&folder.join("possible_answer"))? {
        answers.insert(line["id"].to_string(), line["ground_truth"].clone());
    }
    let mut cases = Vec::new();
    for line in lines(folder)? {
        let tools: Vec<ToolDef> =
            line["function"].as_array().into_iter().flatten().filter_map(tool).collect();
        if tools.is_empty() {
            continue;
        }
        let turns = line["question"].as_array().into_iter().flatten();
        let messages = turns.flat_map(|turn| turn.as_array().into_iter().flatten());
        let questions =
            messages.filter_map(|message| message["content"].as_str().map(str::to_owned)).collect();
        let answer = answers.get(&line["id"].to_string()).and_then(Value::as_array);
        let calls = answer.into_iter().flatten().filter_map(call).collect();
        cases.push(Case { tools, questions, calls });
    }
    Ok(cases)
}

/// Returns the lines of all files in a folder. Files that are not lines of JSON are left out.
fn lines(folder: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut values = Vec::new();
    for path in paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "json"))
    {
        let text = fs::read_to_string(path)?;
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        values.extend(lines.into_iter().flatten());
    }
    Ok(values)
}

fn tool(function: &Value) -> Option<ToolDef> {
    let mut parameters = function["parameters"].clone();
    into_json_schema(&mut parameters);
    Some(ToolDef {
        name: function["name"].as_str()?.to_owned(),
        description: String::new(),
        parameters,
        ..ToolDef::default()
    })
}

/// Replaces the names of types in Python, Java and JavaScript by those of JSON Schema.
fn into_json_schema(schema: &mut Value) {
    if let Some(kind) = schema["type"].as_str() {
        let kind = match kind {
            "dict" | "object" | "HashMap" | "Hashtable" => "object",
            "list" | "array" | "tuple" | "Array" | "ArrayList" => "array",
            "integer" | "long" | "short" | "byte" | "int" => "integer",
            "float" | "double" | "number" => "number",
            "boolean" | "Boolean" | "bool" => "boolean",
            "string" | "String" | "char" => "string",
            _ => "",
        };
        if kind.is_empty() {
            schema.as_object_mut().map(|schema| schema.remove("type"));
        } else {
            schema["type"] = json!(kind);
        }
    }
    for property in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        into_json_schema(property.1);
    }
    if let Some(items) = schema.get_mut("items") {
        into_json_schema(items);
    }
}

/// Reads `{"NAME": {"ARGUMENT": [VALUES]}}`. The first value counts; an empty text means that the argument may be absent.
fn call(truth: &Value) -> Option<(String, Value)> {
    let (name, arguments) = truth.as_object()?.iter().next()?;
    Some((name.clone(), Value::Object(first_values(arguments.as_object()?))))
}

fn first_values(map: &Map<String, Value>) -> Map<String, Value> {
    let first = |values: &Value| values.as_array()?.iter().find(|value| **value != json!("")).map(concrete);
    map.iter().filter_map(|(key, values)| Some((key.clone(), first(values)?))).collect()
}

fn concrete(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(first_values(map)),
        Value::Array(list) => list.iter().map(concrete).collect(),
        other => other.clone(),
    }
}
