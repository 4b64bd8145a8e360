//! JSON that fits a schema, byte by byte: what a model is held to when it has to call a tool.
//!
//! The schema is a tool's `parameters`: objects with the properties it names, arrays, texts, numbers, and one
//! of several. Everything in it is bounded, since it may come from a client.

mod compile;
mod walk;

use self::{compile::Shapes, walk::Stack};
use serde_json::Value;

use crate::engine::Constraint;

/// Ways to read what has been written that are followed at a time. Only alternatives that begin alike make
/// more than one.
const WAYS: usize = 32;

/// Bytes that are accepted: those of one JSON text that fits.
#[derive(Clone)]
pub struct Grammar {
    shapes: std::sync::Arc<Shapes>,
    ways: Vec<Stack>,
}

impl Grammar {
    /// Accepts an object that fits `schema`.
    pub fn object(schema: &Value) -> Self {
        let mut grammar = Self { shapes: Shapes::of_object(schema).into(), ways: Vec::new() };
        grammar.restart();
        grammar
    }

    /// Takes `bytes` if they are allowed, and says whether they were. What is not allowed changes nothing.
    pub fn advance(&mut self, bytes: &[u8]) -> bool {
        let Some(ways) = self.after(bytes) else { return false };
        self.ways = ways;
        true
    }

    fn after(&self, bytes: &[u8]) -> Option<Vec<Stack>> {
        let mut ways = self.ways.clone();
        for &byte in bytes {
            let mut next = Vec::with_capacity(ways.len());
            for way in ways {
                way.step(byte, &self.shapes, &mut next);
            }
            next.dedup();
            next.truncate(WAYS);
            if next.is_empty() {
                return None;
            }
            ways = next;
        }
        Some(ways)
    }
}

impl Constraint for Grammar {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        !bytes.is_empty() && self.after(bytes).is_some()
    }

    fn push(&mut self, bytes: &[u8]) {
        self.advance(bytes);
    }

    /// The JSON text is whole.
    fn complete(&self) -> bool {
        self.ways.iter().any(Stack::is_empty)
    }

    fn restart(&mut self) {
        self.ways = vec![Stack::new(self.shapes.root())];
    }
}

#[cfg(test)]
mod tests;
