//! The arithmetic of kontekst's built-in engine: what is not a product of many vectors with a large quantised matrix,
//! which is candle's.
//!
//! Everything works on `f32` numbers in slices, vectors one after the other, and is compiled for several generations
//! of CPUs, of which one is chosen when the program runs. Nothing here checks what a file says: the engine has.
//! Slices of a wrong length panic.

mod attention;
mod blocks;
mod dense;
mod math;
mod memory;

pub use attention::{Attention, remember};
pub use blocks::Blocks;
pub use dense::Dense;
pub use math::{add, add_to_each, exp, gelu_times, half, normalise, silu_times};
pub use memory::Memory;
