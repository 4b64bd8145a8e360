//! The network: llama's, small. Its numbers, what it says to a row of conversations, and how each number should
//! change for it to say that better.

pub mod attention;
mod backward;
mod forward;
pub mod ops;
mod row;
mod shape;
#[cfg(test)]
mod tests;
mod weights;

pub use backward::backward;
pub use forward::{Memory, forward};
pub use row::{GRAIN, Row};
pub use shape::{EPSILON, HEAD, LOGITS, Layer, ROPE_BASE, Shape, VOCABULARY, initial};
pub use weights::{Packs, Weights};
