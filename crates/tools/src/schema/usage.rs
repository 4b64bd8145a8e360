//! Describes a tool in one line.

use serde_json::Value;

use kontekst_core::ToolDef;

/// The maximum length of a description, in bytes.
const MAX_BYTES: usize = 600;

/// Returns the tool in one line, such as `read_file(path: string, start_line?: integer)`. A description of more than 600
/// bytes is cut.
pub fn usage(tool: &ToolDef) -> String {
    let required: Vec<&str> =
        tool.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let member = |(name, schema): (&String, &Value)| {
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        format!("{name}{optional}: {}", kind(schema))
    };
    // The required members come first, in the order of the tool's author; an object has none of its own.
    let mut properties: Vec<_> = tool.parameters["properties"].as_object().into_iter().flatten().collect();
    properties.sort_by_key(|(name, _)| required.iter().position(|known| known == name).unwrap_or(usize::MAX));
    let members: Vec<String> = properties.into_iter().map(member).collect();
    let mut text = format!("{}({})", tool.name, members.join(", "));
    if text.len() > MAX_BYTES {
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.push('…');
    }
    text
}

/// Returns the values of a schema: its choices, or else its types.
fn kind(schema: &Value) -> String {
    let joined = |values: &[Value], text: &dyn Fn(&Value) -> String| {
        values.iter().map(text).collect::<Vec<_>>().join("|")
    };
    let name = |value: &Value| value.as_str().unwrap_or("any").to_owned();
    match (&schema["enum"], &schema["type"]) {
        (Value::Array(choices), _) => joined(choices, &Value::to_string),
        (_, Value::Array(kinds)) => joined(kinds, &name),
        (_, kind) => name(kind),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(parameters: Value) -> String {
        let name = "f".to_owned();
        usage(&ToolDef { name, description: "d".to_owned(), parameters, ..ToolDef::default() })
    }

    #[test]
    fn members_have_their_types_and_choices() {
        let parameters = json!({"type": "object", "required": ["a", "c"], "properties": {
            "a": {"type": "string"}, "b": {"type": ["integer", "null"]}, "c": {"enum": ["x", 2]}, "d": {}}});
        assert_eq!(tool(parameters), r#"f(a: string, c: "x"|2, b?: integer|null, d?: any)"#);
        assert_eq!(tool(json!({"type": "object"})), "f()");
        assert!(tool(json!({"properties": {"é".repeat(1000): {}}})).len() < MAX_BYTES + 4);
    }
}
