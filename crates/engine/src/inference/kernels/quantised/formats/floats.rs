//! `F32`, `F16` and `BF16`: plain numbers.

use super::{Decode, half};
use crate::inference::kernels::{
    math::LANES,
    quantised::{
        chunk::{Chunk, LARGEST_WEIGHT, LENGTH},
        registers::{ByteRegisters, Registers},
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
    pub(in crate::inference::kernels::quantised) fn product<R: ByteRegisters>(
        self,
        registers: R,
        row: &[u8],
        vector: &[f32],
    ) -> f32 {
        match self {
            Self::F32 => product(
                registers,
                row,
                vector,
                f32::from_le_bytes,
                #[inline(always)]
                |numbers| each(registers, numbers, f32::from_le_bytes),
            ),
            Self::F16 => product(
                registers,
                row,
                vector,
                half,
                #[inline(always)]
                |numbers| registers.halves(numbers),
            ),
            Self::BF16 => product(
                registers,
                row,
                vector,
                brain,
                #[inline(always)]
                |numbers| each(registers, numbers, brain),
            ),
        }
    }
}

/// Multiplies in several sums, so that one addition need not wait for the one before it. `number` reads one number, and
/// `numbers` a register of them.
#[inline(always)]
fn product<R: ByteRegisters, const N: usize>(
    registers: R,
    row: &[u8],
    vector: &[f32],
    number: impl Fn([u8; N]) -> f32,
    numbers: impl Fn(&[[u8; N]; LANES]) -> R::Floats,
) -> f32 {
    const SUMS: usize = 4;
    let ((row, last_weights), (vector, last_numbers)) =
        (row.as_chunks::<N>().0.as_chunks::<LANES>(), vector.as_chunks::<LANES>());
    let ((row, rest), (vector, vector_rest)) = (row.as_chunks::<SUMS>(), vector.as_chunks::<SUMS>());
    let mut sums = [registers.splat_float(0.0); SUMS];
    for (weights, vector) in row.iter().zip(vector) {
        registers.fetch_ahead(weights.as_flattened().as_flattened());
        for at in 0..SUMS {
            let vector = registers.load_floats(&vector[at]);
            sums[at] = registers.multiply_add_floats(numbers(&weights[at]), vector, sums[at]);
        }
    }
    for at in 0..rest.len().min(SUMS) {
        let vector = registers.load_floats(&vector_rest[at]);
        sums[at] = registers.multiply_add_floats(numbers(&rest[at]), vector, sums[at]);
    }
    let mut sum = 0.0;
    for at in 0..last_weights.len() {
        sum += number(last_weights[at]) * last_numbers[at];
    }
    let mut lanes = [0.0; LANES];
    for sums in sums {
        let sums = registers.lanes(sums);
        for lane in 0..LANES {
            lanes[lane] += sums[lane];
        }
    }
    sum + lanes.iter().sum::<f32>()
}

/// Reads a register of numbers one by one, which the compiler does at once.
#[inline(always)]
fn each<R: ByteRegisters, const N: usize>(
    registers: R,
    bytes: &[[u8; N]; LANES],
    number: impl Fn([u8; N]) -> f32,
) -> R::Floats {
    let mut numbers = [0.0; LANES];
    for lane in 0..LANES {
        numbers[lane] = number(bytes[lane]);
    }
    registers.load_floats(&numbers)
}

/// Reads numbers exactly.
pub(super) fn numbers<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).collect()
}

#[inline(always)]
pub(super) fn brain([low, high]: [u8; 2]) -> f32 {
    f32::from_bits(u32::from_le_bytes([0, 0, low, high]))
}
