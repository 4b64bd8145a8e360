//! A constraint that holds an answer to JSON that fits a schema, byte by byte.
//!
//! The schema is the `parameters` of a tool: objects with the properties it names, arrays, strings, numbers, and
//! alternatives. It may come from a client, so everything in it is bounded.

mod compile;
mod held;
mod parse;
mod scalar;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use self::{compile::Shapes, parse::Parse};
use crate::Constraint;

/// The most parses that are followed at a time. Only alternatives that begin alike make more than one.
const MAX_PARSES: usize = 32;

/// Accepts the bytes of one JSON text that fits a schema.
#[derive(Clone)]
pub struct Grammar {
    shapes: Arc<Shapes>,
    /// Every way to parse what was accepted so far.
    parses: Vec<Parse>,
}

impl Grammar {
    /// Accepts an object that fits `schema`.
    pub fn object(schema: &Value) -> Self {
        Self::new(Shapes::of_object(schema))
    }

    /// Accepts a value that fits `schema`.
    pub fn value(schema: &Value) -> Self {
        Self::new(Shapes::of_value(schema))
    }

    /// Returns the first word of `schema` that no grammar holds, with its place, such as `pattern in properties/id`. An
    /// answer fits everything else that the schema says.
    pub fn not_held(schema: &Value) -> Option<String> {
        let too_large = || Shapes::of_value(schema).is_full().then(|| "its size".to_owned());
        held::not_held(schema).or_else(too_large)
    }

    fn new(shapes: Shapes) -> Self {
        Self { parses: vec![Parse::new(shapes.root())], shapes: shapes.into() }
    }

    /// Accepts `bytes` if they fit, and returns true if they did. Otherwise nothing changes.
    pub fn advance(&mut self, bytes: &[u8]) -> bool {
        let Some(parses) = self.after(bytes) else { return false };
        self.parses = parses;
        true
    }

    fn after(&self, bytes: &[u8]) -> Option<Vec<Parse>> {
        let mut parses = self.parses.clone();
        for &byte in bytes {
            let mut next = Vec::with_capacity(parses.len());
            for parse in parses {
                parse.step(byte, &self.shapes, &mut next);
            }
            next.dedup();
            next.truncate(MAX_PARSES);
            if next.is_empty() {
                return None;
            }
            parses = next;
        }
        Some(parses)
    }
}

impl Constraint for Grammar {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        !bytes.is_empty() && self.after(bytes).is_some()
    }

    fn push(&mut self, bytes: &[u8]) {
        self.advance(bytes);
    }

    /// Returns true if the JSON text is complete.
    fn is_complete(&self) -> bool {
        self.parses.iter().any(Parse::is_complete)
    }
}
