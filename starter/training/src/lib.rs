//! The program that makes the starter model.

pub mod data;
pub mod decode;
pub mod eval;
pub mod gguf;
pub mod matmul;
pub mod net;
pub mod train;
pub mod wide;
