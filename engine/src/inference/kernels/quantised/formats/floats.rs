//! `F32`, `F16` and `BF16`: plain numbers.

use super::{Decode, half};
use crate::inference::kernels::quantised::{
    chunk::{Chunk, LARGEST_WEIGHT, LENGTH},
    registers::Registers,
};

macro_rules! format {
    ($name: ident, $bytes: literal, $number: expr) => {
        pub(super) struct $name;

        impl Decode for $name {
            const CHUNK_BYTES: usize = LENGTH * $bytes;

            type Head = ();

            #[inline(always)]
            fn head(_: &[u8]) {}

            #[inline(always)]
            fn numbers<R: Registers>(_: R, blocks: &[u8], (): &(), to: &mut Chunk) {
                let mut numbers = [0.0; LENGTH];
                let blocks = blocks.as_chunks::<$bytes>().0;
                for at in 0..blocks.len().min(LENGTH) {
                    numbers[at] = $number(blocks[at]);
                }
                to.round(&numbers, f32::from(LARGEST_WEIGHT));
            }
        }
    };
}

format!(F32, 4, f32::from_le_bytes);
format!(F16, 2, half);
format!(BF16, 2, brain);

/// Reads numbers exactly.
pub(super) fn numbers<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).collect()
}

#[inline(always)]
pub(super) fn brain([low, high]: [u8; 2]) -> f32 {
    f32::from_bits(u32::from_le_bytes([0, 0, low, high]))
}
