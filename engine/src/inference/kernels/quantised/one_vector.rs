//! One vector by a matrix. Each byte of the matrix is read once and multiplied as it is.

use std::marker::PhantomData;

use super::{
    Quantised,
    activations::Activations,
    formats::{Factors, Packed, PackedJob, Plain},
    registers::{ByteRegisters, Portable, Work},
};
use crate::inference::kernels::math::{cores, in_parallel};

/// Chunks of a matrix per core. A core that is held up leaves its remaining chunks to the others.
const CHUNKS_PER_CORE: usize = 8;

/// A vector, and its numbers rounded to bytes, which are not there if the format has plain numbers.
#[derive(Clone, Copy)]
pub(super) struct Vector<'a> {
    pub numbers: &'a [f32],
    pub rounded: &'a [Activations],
}

/// Multiplies a vector on all cores.
pub(super) fn product(matrix: &Quantised, vector: Vector<'_>) -> Vec<f32> {
    #[cfg(target_arch = "x86_64")]
    {
        use super::registers::{Avx2, Avx512};
        if let Some(registers) = Avx512::try_new() {
            return product_in(registers, matrix, vector);
        }
        if let Some(registers) = Avx2::try_new() {
            return product_in(registers, matrix, vector);
        }
    }
    product_in(Portable, matrix, vector)
}

/// Multiplies a vector with this kind of registers.
pub(super) fn product_in<R: ByteRegisters>(registers: R, matrix: &Quantised, vector: Vector<'_>) -> Vec<f32> {
    let mut out = vec![0.0; matrix.rows];
    let rows = matrix.rows.div_ceil(cores() * CHUNKS_PER_CORE).max(1);
    in_parallel(&mut out, rows, |index, out| {
        let bytes = matrix.row_bytes(index * rows, out.len());
        let rows = Rows { registers, size: bytes.len() / out.len(), bytes, vector, out };
        match matrix.format.plain() {
            Some(plain) => registers.vectorise(PlainRows { rows, plain }),
            None => matrix.format.with_packed(rows),
        }
    });
    out
}

/// Some rows of a matrix, of `size` bytes each, to be multiplied on one core.
struct Rows<'a, R> {
    registers: R,
    bytes: &'a [u8],
    size: usize,
    vector: Vector<'a>,
    out: &'a mut [f32],
}

impl<R: ByteRegisters> PackedJob for Rows<'_, R> {
    fn run<F: Packed>(self) {
        self.registers.vectorise(PackedRows::<R, F> { rows: self, format: PhantomData });
    }
}

struct PackedRows<'a, R, F> {
    rows: Rows<'a, R>,
    format: PhantomData<F>,
}

impl<R: ByteRegisters, F: Packed> Work for PackedRows<'_, R, F> {
    #[inline(always)]
    fn run(self) {
        let Rows { registers, bytes, size, vector, out } = self.rows;
        for (row, out) in bytes.chunks_exact(size).zip(out) {
            let zero = registers.eight(&[0.0; 8]);
            let mut sums = [zero; 3];
            for (blocks, activations) in row.chunks(F::CHUNK_BYTES).zip(vector.rounded) {
                if blocks.len() == F::CHUNK_BYTES {
                    // It is compiled for this length, without a loop.
                    add_products::<R, F>(registers, blocks, activations, 8, &mut sums);
                } else {
                    let count = 8 * blocks.len() / F::CHUNK_BYTES;
                    add_products::<R, F>(registers, blocks, activations, count, &mut sums);
                }
            }
            *out = registers.total(sums[0]) + registers.total(sums[1]) + registers.total(sums[2]);
        }
    }
}

/// Adds the products of at most 256 numbers: of `count` times 32. The third sum is for the offsets.
#[inline(always)]
fn add_products<R: ByteRegisters, F: Packed>(
    registers: R,
    blocks: &[u8],
    activations: &Activations,
    count: usize,
    sums: &mut [R::Eight; 3],
) {
    registers.fetch_ahead(blocks);
    let [factors, offsets] = F::factors(blocks);
    let factors = factors.scaled(registers, activations);
    for number in 0..count {
        let bytes = F::bytes(registers, blocks, number);
        let numbers = &activations.numbers[number];
        let products = if F::SIGNED {
            registers.signed_products(bytes, numbers)
        } else {
            registers.products(bytes, numbers)
        };
        let factors = F::Factors::of(registers, factors, number);
        // By turns, so that one addition need not wait for the one before it.
        sums[number % 2] = registers.plus_times(sums[number % 2], products, factors);
    }
    if F::OFFSETS {
        sums[2] = offsets.add(registers, activations, sums[2]);
    }
}

struct PlainRows<'a, R> {
    rows: Rows<'a, R>,
    plain: Plain,
}

impl<R: ByteRegisters> Work for PlainRows<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Rows { bytes, size, vector, out, .. } = self.rows;
        for (row, out) in bytes.chunks_exact(size).zip(out) {
            *out = self.plain.product(row, vector.numbers);
        }
    }
}
