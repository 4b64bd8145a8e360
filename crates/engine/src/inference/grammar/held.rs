//! Finds what a JSON schema demands and a grammar does not hold.

use serde_json::{Map, Value};

use super::compile::{MAX_DEPTH, merged};

/// The words that say nothing about which values fit.
const ANNOTATIONS: &[&str] = &[
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// The words that hold whatever the type is.
const ANY_TYPE: &[&str] = &["const", "enum", "type"];
const OF_TEXT: &[&str] = &["minLength", "maxLength"];
const OF_INTEGER: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
const OF_ARRAY: &[&str] = &["items", "minItems", "maxItems"];
const OF_OBJECT: &[&str] = &["properties", "required", "additionalProperties"];

/// Returns the first word of a schema that a grammar does not hold, with its place: `pattern in properties/id`.
pub(super) fn not_held(schema: &Value) -> Option<String> {
    find(schema, MAX_DEPTH).map(|Found { word, mut place }| {
        place.reverse();
        match place.is_empty() {
            true => word,
            false => format!("{word} in {}", place.join("/")),
        }
    })
}

/// A word that is not held.
struct Found {
    word: String,
    /// The path of its schema, innermost first.
    place: Vec<String>,
}

impl Found {
    fn new(word: &str) -> Self {
        Self { word: word.to_owned(), place: Vec::new() }
    }

    fn inside(mut self, name: &str) -> Self {
        self.place.push(name.to_owned());
        self
    }
}

fn find(schema: &Value, depth: u32) -> Option<Found> {
    let map = match schema {
        Value::Object(map) if map.is_empty() => return None,
        Value::Object(map) if depth > 0 => map,
        Value::Object(_) => return Some(Found::new("a depth of more than 32")),
        Value::Bool(true) => return None,
        _ => return Some(Found::new("a schema that is no object")),
    };
    if map.contains_key("allOf") {
        return match merged(map) {
            Some(map) => find(&Value::Object(map), depth - 1),
            None => Some(Found::new("allOf")),
        };
    }
    // A listed value decides alone, and so does one of several schemas.
    if map.contains_key("enum") || map.contains_key("const") {
        return word_besides(map, &[ANY_TYPE]);
    }
    if let Some((key, either)) = ["anyOf", "oneOf"].iter().find_map(|key| Some((*key, map.get(*key)?))) {
        let Some(either) = either.as_array() else { return Some(Found::new(key)) };
        return word_besides(map, &[&[key]])
            .or_else(|| either.iter().find_map(|schema| Some(find(schema, depth - 1)?.inside(key))));
    }
    let kinds: Vec<&str> = match map.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) => return Some(Found::new("type")),
        None if map.contains_key("properties") => vec!["object"],
        None => Vec::new(),
    };
    let mut held = vec![ANY_TYPE];
    for kind in kinds {
        match kind {
            "string" => held.push(OF_TEXT),
            "integer" => held.push(OF_INTEGER),
            "array" => held.push(OF_ARRAY),
            "object" => held.push(OF_OBJECT),
            "number" | "boolean" | "null" => {}
            _ => return Some(Found::new("type")),
        }
    }
    word_besides(map, &held).or_else(|| unlisted_required(map)).or_else(|| in_members(map, depth))
}

/// Finds out if a member is required that `properties` does not list.
fn unlisted_required(map: &Map<String, Value>) -> Option<Found> {
    let listed = map.get("properties").and_then(Value::as_object);
    let mut required = map.get("required").and_then(Value::as_array).into_iter().flatten();
    let is_listed = |name: &str| listed.is_some_and(|listed| listed.contains_key(name));
    required.any(|name| !name.as_str().is_some_and(is_listed)).then(|| Found::new("required"))
}

/// Returns a word that is in none of `held`.
fn word_besides(map: &Map<String, Value>, held: &[&[&str]]) -> Option<Found> {
    let is_held = |word: &str| ANNOTATIONS.contains(&word) || held.iter().any(|list| list.contains(&word));
    map.keys().find(|word| !is_held(word)).map(|word| Found::new(word))
}

fn in_members(map: &Map<String, Value>, depth: u32) -> Option<Found> {
    let members = map.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut members = members
        .filter_map(|(name, schema)| Some(find(schema, depth - 1)?.inside(&format!("properties/{name}"))));
    let items = || Some(find(map.get("items")?, depth - 1)?.inside("items"));
    let others = || {
        let schema = map.get("additionalProperties").filter(|schema| schema.is_object())?;
        Some(find(schema, depth - 1)?.inside("additionalProperties"))
    };
    members.next().or_else(items).or_else(others)
}
