//! What makes kontekst's built-in model.

pub mod data;
pub mod decode;
pub mod eval;
pub mod gguf;
pub mod matmul;
pub mod net;
pub mod train;
pub mod wide;
