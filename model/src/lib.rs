//! What makes kontekst's built-in model.

pub mod data;
pub mod eval;
