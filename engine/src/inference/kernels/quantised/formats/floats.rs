//! `F32`, `F16` and `BF16`: plain numbers.

use super::{Decode, half};
use crate::inference::kernels::{
    math::LANES,
    quantised::{
        chunk::{Chunk, LARGEST_WEIGHT, LENGTH},
        registers::Registers,
    },
};

macro_rules! format {
    ($name: ident, $bytes: literal, $number: expr) => {
        pub(super) struct $name;

        impl Decode for $name {
            const CHUNK_BYTES: usize = LENGTH * $bytes;

            #[inline(always)]
            fn decode<R: Registers>(_: R, blocks: &[u8], to: &mut Chunk) {
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

/// One of the formats, for products with numbers that are not rounded.
#[derive(Clone, Copy)]
pub(in crate::inference::kernels::quantised) enum Plain {
    F32,
    F16,
    BF16,
}

impl Plain {
    /// Multiplies a row by a vector.
    #[inline(always)]
    pub(in crate::inference::kernels::quantised) fn product(self, row: &[u8], vector: &[f32]) -> f32 {
        match self {
            Self::F32 => product(row, vector, f32::from_le_bytes),
            Self::F16 => product(row, vector, half),
            Self::BF16 => product(row, vector, brain),
        }
    }
}

/// Multiplies in several partial sums, so that one addition need not wait for the one before it.
#[inline(always)]
fn product<const N: usize>(row: &[u8], vector: &[f32], number: impl Fn([u8; N]) -> f32) -> f32 {
    const SUMS: usize = 2 * LANES;
    let (row, _) = row.as_chunks::<N>();
    let ((weights, last_weights), (numbers, last_numbers)) =
        (row.as_chunks::<SUMS>(), vector.as_chunks::<SUMS>());
    let mut sums = [0.0; SUMS];
    for (weights, numbers) in weights.iter().zip(numbers) {
        for at in 0..SUMS {
            sums[at] += number(weights[at]) * numbers[at];
        }
    }
    let mut rest = 0.0;
    for (weight, last) in last_weights.iter().zip(last_numbers) {
        rest += number(*weight) * last;
    }
    for at in 0..LANES {
        sums[at] += sums[LANES + at];
    }
    sums[..LANES].iter().sum::<f32>() + rest
}

/// Reads numbers exactly.
pub(super) fn numbers<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).collect()
}

#[inline(always)]
pub(super) fn brain([low, high]: [u8; 2]) -> f32 {
    f32::from_bits(u32::from_le_bytes([0, 0, low, high]))
}
