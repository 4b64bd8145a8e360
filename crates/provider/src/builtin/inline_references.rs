//! Replaces the references in a JSON schema by what they refer to, because the grammar of the engine knows none.

use serde_json::{Map, Value, json};

/// The depth to which references are followed. A schema that refers to itself ends there with a value of any kind.
const MAX_DEPTH: u32 = 16;

/// The most values that are copied. A client sends the schema, and a small one can stand for a huge one.
const MAX_VALUES: usize = 20_000;

/// Returns `schema` with each `{"$ref": "#/…"}` replaced by the part of the schema that it names.
pub(super) fn inline_references(schema: &Value) -> Value {
    let mut copy = Copy { root: schema, left: MAX_VALUES };
    copy.value(schema, MAX_DEPTH)
}

struct Copy<'a> {
    root: &'a Value,
    left: usize,
}

impl Copy<'_> {
    fn value(&mut self, value: &Value, depth: u32) -> Value {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return Value::Object(Map::new());
        }
        match value {
            Value::Array(list) => list.iter().map(|value| self.value(value, depth)).collect(),
            Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
                Some(reference) => self.referenced(reference, depth),
                None => {
                    let members = map.iter().filter(|(name, _)| *name != "$defs" && *name != "definitions");
                    members.map(|(name, value)| (name.clone(), self.value(value, depth))).collect()
                }
            },
            other => other.clone(),
        }
    }

    fn referenced(&mut self, reference: &str, depth: u32) -> Value {
        let found = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        match (found, depth.checked_sub(1)) {
            (Some(found), Some(depth)) => self.value(found, depth),
            // Beyond the depth, any value fits.
            (Some(_), None) => Value::Object(Map::new()),
            (None, _) => json!({"$ref": reference}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_and_loops_end() {
        let city = json!({"type": "string"});
        let schema = json!({
            "$defs": {"City": city},
            "type": "object",
            "properties": {"from": {"$ref": "#/$defs/City"}, "to": {"type": "array", "items": {"$ref": "#/$defs/City"}}},
        });
        assert_eq!(
            inline_references(&schema),
            json!({"type": "object", "properties": {"from": city, "to": {"type": "array", "items": city}}})
        );
        let endless =
            json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#/nothing"}}});
        assert!(inline_references(&endless).to_string().len() < 1_000_000);
    }
}
