//! A few vectors by a matrix. Each byte of the matrix is read once and multiplied as it is.
//!
//! Each vector is multiplied by the same operations in the same order as if it were alone, so that the products are the same
//! to the last bit. What a step computes therefore does not depend on the number of tokens that it reads.

use std::marker::PhantomData;

use super::{
    FEW, Products, Quantised,
    activations::Activations,
    formats::{Factors, Packed, PackedJob, Plain},
    registers::{ByteRegisters, Portable, Work},
};
use crate::inference::kernels::math::{cores, in_parallel};

/// Chunks of a matrix per core. A core that is held up leaves its remaining chunks to the others.
const CHUNKS_PER_CORE: usize = 8;
/// Registers of bytes in 256 numbers.
const REGISTERS: usize = 8;

/// At most [`FEW`] vectors, and their numbers rounded to bytes, which are not there if the format has plain numbers.
#[derive(Clone, Copy)]
pub(super) struct Vectors<'a> {
    /// One vector after the other.
    pub numbers: &'a [f32],
    pub rounded: &'a [Vec<Activations>],
    pub count: usize,
}

/// Multiplies vectors on all cores.
pub(super) fn products(matrix: &Quantised, vectors: Vectors<'_>) -> Products {
    #[cfg(target_arch = "x86_64")]
    {
        use super::registers::{Avx2, Avx512};
        if let Some(registers) = Avx512::try_new() {
            return products_in(registers, matrix, vectors);
        }
        if let Some(registers) = Avx2::try_new() {
            return products_in(registers, matrix, vectors);
        }
    }
    products_in(Portable, matrix, vectors)
}

/// Multiplies vectors with this kind of registers.
pub(super) fn products_in<R: ByteRegisters>(
    registers: R,
    matrix: &Quantised,
    vectors: Vectors<'_>,
) -> Products {
    let count = vectors.count;
    let mut out = vec![0.0; matrix.rows * count];
    let block = matrix.rows.div_ceil(cores() * CHUNKS_PER_CORE).max(1);
    in_parallel(&mut out, block * count, |index, out| {
        let rows = out.len() / count;
        let bytes = matrix.row_bytes(index * block, rows);
        let rows = Rows { registers, size: bytes.len() / rows, bytes, vectors, out };
        match matrix.format.plain() {
            Some(plain) => registers.vectorise(PlainRows { rows, plain }),
            None => matrix.format.with_packed(rows),
        }
    });
    Products::new(out, matrix.rows, count, block)
}

/// Some rows of a matrix, of `size` bytes each, to be multiplied on one core. The products go to `out`, those of each vector
/// one after the other.
struct Rows<'a, R> {
    registers: R,
    bytes: &'a [u8],
    size: usize,
    vectors: Vectors<'a>,
    out: &'a mut [f32],
}

impl<R: ByteRegisters> PackedJob for Rows<'_, R> {
    fn run<F: Packed>(self) {
        match self.vectors.count {
            1 => self.registers.vectorise(OneVector::<R, F> { rows: self, format: PhantomData }),
            _ => self.registers.vectorise(SeveralVectors::<R, F> { rows: self, format: PhantomData }),
        }
    }
}

struct OneVector<'a, R, F> {
    rows: Rows<'a, R>,
    format: PhantomData<F>,
}

impl<R: ByteRegisters, F: Packed> Work for OneVector<'_, R, F> {
    #[inline(always)]
    fn run(self) {
        let Rows { registers, bytes, size, vectors, out } = self.rows;
        let zero = registers.eight(&[0.0; 8]);
        for (row, out) in bytes.chunks_exact(size).zip(out) {
            let mut sums = [zero; 3];
            for (blocks, activations) in row.chunks(F::CHUNK_BYTES).zip(&vectors.rounded[0]) {
                registers.fetch_ahead(blocks);
                let chunk = Chunk::<R, F, _>::new(
                    registers,
                    #[inline(always)]
                    |number| F::bytes(registers, blocks, number),
                    F::factors(blocks),
                );
                // It is compiled for a whole chunk, without a loop.
                match blocks.len() == F::CHUNK_BYTES {
                    true => chunk.add_products(activations, REGISTERS, &mut sums),
                    false => chunk.add_products(activations, registers_of::<F>(blocks), &mut sums),
                }
            }
            *out = total(registers, sums);
        }
    }
}

struct SeveralVectors<'a, R, F> {
    rows: Rows<'a, R>,
    format: PhantomData<F>,
}

impl<R: ByteRegisters, F: Packed> Work for SeveralVectors<'_, R, F> {
    #[inline(always)]
    fn run(self) {
        let Rows { registers, bytes, size, vectors, out } = self.rows;
        let zero = registers.eight(&[0.0; 8]);
        let rows = out.len() / vectors.count;
        for (number, row) in bytes.chunks_exact(size).enumerate() {
            let mut sums = [[zero; 3]; FEW];
            for (at, blocks) in row.chunks(F::CHUNK_BYTES).enumerate() {
                registers.fetch_ahead(blocks);
                let count = registers_of::<F>(blocks);
                let mut bytes = [F::bytes(registers, blocks, 0); REGISTERS];
                for number in 1..count {
                    bytes[number] = F::bytes(registers, blocks, number);
                }
                let chunk = Chunk::<R, F, _>::new(
                    registers,
                    #[inline(always)]
                    |number| bytes[number],
                    F::factors(blocks),
                );
                for (rounded, sums) in vectors.rounded.iter().zip(&mut sums) {
                    match count == REGISTERS {
                        true => chunk.add_products(&rounded[at], REGISTERS, sums),
                        false => chunk.add_products(&rounded[at], count, sums),
                    }
                }
            }
            for vector in 0..vectors.count {
                out[vector * rows + number] = total(registers, sums[vector]);
            }
        }
    }
}

/// At most 256 numbers of a row.
struct Chunk<R, F: Packed, P> {
    registers: R,
    /// Returns some bytes of it.
    packed: P,
    factors: F::Factors,
    offsets: F::Factors,
}

impl<R: ByteRegisters, F: Packed, P: Fn(usize) -> R::Bytes> Chunk<R, F, P> {
    #[inline(always)]
    fn new(registers: R, packed: P, [factors, offsets]: [F::Factors; 2]) -> Self {
        Self { registers, packed, factors, offsets }
    }

    /// Adds the products of `count` times 32 numbers. The third sum is for the offsets.
    #[inline(always)]
    fn add_products(&self, activations: &Activations, count: usize, sums: &mut [R::Eight; 3]) {
        let registers = self.registers;
        let factors = self.factors.scaled(registers, activations);
        for number in 0..count {
            let bytes = (self.packed)(number);
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
            sums[2] = self.offsets.add(registers, activations, sums[2]);
        }
    }
}

/// The number of registers of bytes in some blocks.
#[inline(always)]
fn registers_of<F: Packed>(blocks: &[u8]) -> usize {
    REGISTERS * blocks.len() / F::CHUNK_BYTES
}

#[inline(always)]
fn total<R: ByteRegisters>(registers: R, sums: [R::Eight; 3]) -> f32 {
    registers.total(sums[0]) + registers.total(sums[1]) + registers.total(sums[2])
}

struct PlainRows<'a, R> {
    rows: Rows<'a, R>,
    plain: Plain,
}

impl<R: ByteRegisters> Work for PlainRows<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Rows { bytes, size, vectors, out, .. } = self.rows;
        let (rows, columns) = (out.len() / vectors.count, vectors.numbers.len() / vectors.count);
        for (number, row) in bytes.chunks_exact(size).enumerate() {
            for vector in 0..vectors.count {
                let numbers = &vectors.numbers[vector * columns..][..columns];
                out[vector * rows + number] = self.plain.product(row, numbers);
            }
        }
    }
}
