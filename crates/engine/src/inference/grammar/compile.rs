//! Compiles a JSON schema to a table of shapes.

use serde_json::{Map, Value, json};

use super::scalar::{MAX_INTEGER, MIN_INTEGER};

/// The most shapes of one schema, and how deep schemas may be nested. Whatever goes beyond accepts any JSON.
const MAX_SHAPES: usize = 4096;
pub(super) const MAX_DEPTH: u32 = 32;

/// The index of a shape in [`Shapes`].
pub(super) type Id = usize;

/// The values that are accepted in one place.
#[derive(Debug, PartialEq)]
pub(super) enum Shape {
    /// Any JSON.
    Any,
    Text(Lengths),
    /// A number that may have a fraction.
    Number,
    Integer(Range),
    /// One of these JSON texts.
    Literal(Vec<Vec<u8>>),
    Array {
        items: Id,
        min: usize,
        max: usize,
    },
    Object {
        members: Vec<Member>,
        /// The values of members with other names; `None` forbids them.
        others: Option<Id>,
    },
    Either(Vec<Id>),
}

/// The fewest and the most characters of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lengths {
    pub min: usize,
    pub max: usize,
}

impl Lengths {
    pub(super) const ANY: Self = Self { min: 0, max: usize::MAX };
}

/// The least and the greatest of some integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub min: i64,
    pub max: i64,
}

/// A member that the schema lists.
#[derive(Debug, PartialEq)]
pub(super) struct Member {
    /// As JSON text without its quotes.
    pub name: Vec<u8>,
    pub required: bool,
    pub value: Id,
}

/// The shapes of a schema.
#[derive(Debug)]
pub(super) struct Shapes {
    list: Vec<Shape>,
    root: Id,
}

/// The first shapes of every table.
pub(super) const ANY: Id = 0;
/// `true`, `false` or `null`.
pub(super) const WORD: Id = 1;

impl Shapes {
    /// Compiles the schema of a value.
    pub(super) fn of_value(schema: &Value) -> Self {
        let mut shapes = Self::new();
        shapes.root = shapes.value(schema, MAX_DEPTH);
        shapes
    }

    fn new() -> Self {
        let words = ["true", "false", "null"].map(|word| word.as_bytes().to_vec());
        Self { list: vec![Shape::Any, Shape::Literal(words.to_vec())], root: ANY }
    }

    /// Compiles the schema of an object, whatever it says about its type.
    pub(super) fn of_object(schema: &Value) -> Self {
        let mut shapes = Self::new();
        let map = schema.as_object().cloned().unwrap_or_default();
        let root = shapes.object(&merged(&map).unwrap_or(map), MAX_DEPTH);
        shapes.root = shapes.add(root);
        shapes
    }

    pub(super) fn root(&self) -> Id {
        self.root
    }

    pub(super) fn get(&self, id: Id) -> &Shape {
        &self.list[id]
    }

    /// Returns true if there was no room for all shapes.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_SHAPES
    }

    fn add(&mut self, shape: Shape) -> Id {
        match shape {
            Shape::Any => ANY,
            shape => {
                self.list.push(shape);
                self.list.len() - 1
            }
        }
    }

    fn value(&mut self, schema: &Value, depth: u32) -> Id {
        let Some(map) = schema.as_object().filter(|_| depth > 0 && self.list.len() < MAX_SHAPES) else {
            return ANY;
        };
        if map.contains_key("allOf") {
            return merged(map).map_or(ANY, |map| self.value(&Value::Object(map), depth - 1));
        }
        let shape = if let Some(listed) = map.get("enum").and_then(Value::as_array) {
            literal(listed)
        } else if let Some(only) = map.get("const") {
            literal(std::slice::from_ref(only))
        } else if let Some(either) = ["anyOf", "oneOf"].iter().find_map(|key| map.get(*key)?.as_array()) {
            Shape::Either(either.iter().map(|schema| self.value(schema, depth - 1)).collect())
        } else {
            match map.get("type") {
                Some(Value::String(kind)) => self.typed(kind, map, depth),
                Some(Value::Array(kinds)) => {
                    let kinds = kinds.iter().filter_map(Value::as_str);
                    let shapes: Vec<Shape> = kinds.map(|kind| self.typed(kind, map, depth)).collect();
                    Shape::Either(shapes.into_iter().map(|shape| self.add(shape)).collect())
                }
                _ if map.contains_key("properties") => self.object(map, depth),
                _ => Shape::Any,
            }
        };
        match shape {
            Shape::Either(either) if either.is_empty() => ANY,
            Shape::Literal(listed) if listed.is_empty() => ANY,
            shape => self.add(shape),
        }
    }

    fn typed(&mut self, kind: &str, map: &Map<String, Value>, depth: u32) -> Shape {
        match kind {
            "string" => {
                let max = count(map, "maxLength").unwrap_or(usize::MAX);
                Shape::Text(Lengths { min: count(map, "minLength").unwrap_or(0).min(max), max })
            }
            "integer" => Shape::Integer(range(map)),
            "number" => Shape::Number,
            "boolean" => Shape::Literal(vec![b"true".to_vec(), b"false".to_vec()]),
            "null" => Shape::Literal(vec![b"null".to_vec()]),
            "array" => {
                let items = map.get("items").map_or(ANY, |items| self.value(items, depth - 1));
                let max = count(map, "maxItems").unwrap_or(usize::MAX);
                Shape::Array { items, min: count(map, "minItems").unwrap_or(0).min(max), max }
            }
            "object" => self.object(map, depth),
            _ => Shape::Any,
        }
    }

    fn object(&mut self, map: &Map<String, Value>, depth: u32) -> Shape {
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = map.get("properties").and_then(Value::as_object);
        let members: Vec<Member> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| {
                let quoted = serde_json::to_vec(name).expect("a string is JSON");
                Member {
                    name: quoted[1..quoted.len() - 1].to_vec(),
                    required: required.contains(&name.as_str()),
                    value: self.value(schema, depth - 1),
                }
            })
            .collect();
        let others = match map.get("additionalProperties") {
            Some(schema @ Value::Object(_)) => Some(self.value(schema, depth - 1)),
            // A model that may invent names will. So it may only where the schema lists none.
            None | Some(Value::Bool(true)) if members.is_empty() => Some(ANY),
            _ => None,
        };
        Shape::Object { members, others }
    }
}

/// Returns a schema with what the schemas in its `allOf` say. `None` if they say two different things of the same word.
/// Properties of the same name become an `allOf` of both.
pub(super) fn merged(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut whole = schema.clone();
    let Some(parts) = whole.remove("allOf") else { return Some(whole) };
    for part in parts.as_array()? {
        for (word, value) in part.as_object()? {
            match (word.as_str(), whole.get_mut(word)) {
                (_, None) => drop(whole.insert(word.clone(), value.clone())),
                ("title" | "description", Some(_)) => {}
                ("allOf" | "required", Some(Value::Array(known))) => {
                    known.extend(value.as_array()?.iter().cloned());
                }
                ("properties", Some(Value::Object(known))) => {
                    for (name, value) in value.as_object()? {
                        let both = match known.get(name) {
                            Some(other) if other != value => json!({"allOf": [other, value]}),
                            _ => value.clone(),
                        };
                        known.insert(name.clone(), both);
                    }
                }
                (_, Some(known)) if known == value => {}
                _ => return None,
            }
        }
    }
    Some(whole)
}

/// Returns the integers that a schema allows, as far as they can be written.
fn range(map: &Map<String, Value>) -> Range {
    let limit = |word: &str| map.get(word).and_then(Value::as_f64);
    let least = [limit("minimum").map(f64::ceil), limit("exclusiveMinimum").map(|limit| limit.floor() + 1.0)];
    let most = [limit("maximum").map(f64::floor), limit("exclusiveMaximum").map(|limit| limit.ceil() - 1.0)];
    let min = least.into_iter().flatten().fold(MIN_INTEGER, |min, limit| min.max(whole(limit)));
    let max = most.into_iter().flatten().fold(MAX_INTEGER, |max, limit| max.min(whole(limit)));
    // No integer fits. Something has to be written, though.
    if min > max { Range { min: MIN_INTEGER, max: MAX_INTEGER } } else { Range { min, max } }
}

/// Converts a limit without a fraction. One that cannot be written is as good as none.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn whole(limit: f64) -> i64 {
    (limit as i64).clamp(MIN_INTEGER, MAX_INTEGER)
}

fn count(map: &Map<String, Value>, word: &str) -> Option<usize> {
    map.get(word).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
}

fn literal(listed: &[Value]) -> Shape {
    Shape::Literal(listed.iter().map(|value| value.to_string().into_bytes()).collect())
}
