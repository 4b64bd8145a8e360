//! The arithmetic of the network.
//!
//! All functions work on `f32` numbers in slices, with vectors one after the other. They are compiled for several
//! generations of CPUs, of which one is chosen at run time. Nothing here checks what a file says, because the caller
//! has; slices of a wrong length panic.

mod attention;
mod dense;
mod kv_cache;
mod math;
mod quantised;
mod simd;

/// The most positions that are computed as if each were alone, with the same result to the last bit. With more it is cheaper
/// to prepare a matrix once for all of them.
pub(crate) const FEW: usize = 8;

pub(crate) use attention::Attention;
pub(crate) use dense::Dense;
pub(crate) use kv_cache::KvCache;
pub(crate) use math::{add, add_bias, exp, gelu_mul, on_threads, rms_norm, silu_mul, to_half};
pub(crate) use quantised::{Format, Input, Products, Quantised};
#[cfg(feature = "test-support")]
pub use simd::without_avx512;
