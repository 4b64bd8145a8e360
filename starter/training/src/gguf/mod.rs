//! GGUF files: the built-in model, and random ones to measure with.

mod blocks;
mod file;
mod model;
mod random;

pub use file::Error;
pub use model::{read, write};
pub use random::{Quantization, random};
