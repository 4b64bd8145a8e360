//! A few vectors by a matrix. Each byte of the matrix is read once and multiplied as it is.
//!
//! Each vector is multiplied by the same operations in the same order as if it were alone, so that the products are the same
//! to the last bit. What a step computes therefore does not depend on the number of tokens that it reads.

use std::marker::PhantomData;

use super::{
    FEW, Products, Quantised,
    activations::Activations,
    formats::{Factors, Packed, PackedJob, Plain},
    registers::{ByteRegisters, Portable, Widest, Work, widest},
};
use crate::inference::kernels::math::{cores, in_parallel};

/// Chunks of a matrix per core. A core that is held up leaves its remaining chunks to the others.
const CHUNKS_PER_CORE: usize = 8;
/// Registers of bytes in 256 numbers.
const REGISTERS: usize = 8;
/// Bytes of 256 numbers of any format.
const LARGEST_CHUNK: usize = 8 * 34;

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
    match widest() {
        #[cfg(target_arch = "x86_64")]
        Widest::Avx512(registers) => products_in(registers, matrix, vectors),
        #[cfg(target_arch = "x86_64")]
        Widest::Avx2(registers) => products_in(registers, matrix, vectors),
        Widest::Portable => products_in(Portable, matrix, vectors),
    }
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
        let (zero, mut last) = (registers.eight(&[0.0; 8]), [0; LARGEST_CHUNK]);
        for (row, out) in bytes.chunks_exact(size).zip(out) {
            let mut sums = [zero; 3];
            // It is compiled for a whole chunk, without a loop.
            let whole = row.chunks_exact(F::CHUNK_BYTES);
            let rest = whole.remainder();
            for (blocks, activations) in whole.zip(&vectors.rounded[0]) {
                add::<R, F>(registers, &blocks[..F::CHUNK_BYTES], REGISTERS, activations, &mut sums);
            }
            if let Some(activations) = vectors.rounded[0].last()
                && !rest.is_empty()
            {
                let (rest, count) = in_pairs::<F>(rest, &mut last);
                add::<R, F>(registers, rest, count, activations, &mut sums);
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
        let (zero, mut last) = (registers.eight(&[0.0; 8]), [0; LARGEST_CHUNK]);
        let rows = out.len() / vectors.count;
        for (number, row) in bytes.chunks_exact(size).enumerate() {
            let mut sums = [[zero; 3]; FEW];
            let whole = row.chunks_exact(F::CHUNK_BYTES);
            let (rest, chunks) = (whole.remainder(), whole.len());
            for (at, blocks) in whole.enumerate() {
                add_each::<R, F>(registers, &blocks[..F::CHUNK_BYTES], REGISTERS, vectors, at, &mut sums);
            }
            if !rest.is_empty() {
                let (rest, count) = in_pairs::<F>(rest, &mut last);
                add_each::<R, F>(registers, rest, count, vectors, chunks, &mut sums);
            }
            for vector in 0..vectors.count {
                out[vector * rows + number] = total(registers, sums[vector]);
            }
        }
    }
}

/// Adds the products of `count` times 32 numbers of some blocks.
#[inline(always)]
fn add<R: ByteRegisters, F: Packed>(
    registers: R,
    blocks: &[u8],
    count: usize,
    activations: &Activations,
    sums: &mut [R::Eight; 3],
) {
    registers.fetch_ahead(blocks);
    let chunk = Chunk::<R, F, _>::new(
        registers,
        #[inline(always)]
        |number| F::bytes(registers, blocks, number),
        F::factors(registers, blocks),
    );
    chunk.add_products(activations, count, sums);
}

/// As [`add`], for the chunk `at` of each vector.
#[inline(always)]
fn add_each<R: ByteRegisters, F: Packed>(
    registers: R,
    blocks: &[u8],
    count: usize,
    vectors: Vectors<'_>,
    at: usize,
    sums: &mut [[R::Eight; 3]; FEW],
) {
    registers.fetch_ahead(blocks);
    let mut bytes = [F::bytes(registers, blocks, 0); REGISTERS];
    for number in 1..count {
        bytes[number] = F::bytes(registers, blocks, number);
    }
    let chunk = Chunk::<R, F, _>::new(
        registers,
        #[inline(always)]
        |number| bytes[number],
        F::factors(registers, blocks),
    );
    for (rounded, sums) in vectors.rounded.iter().zip(sums) {
        chunk.add_products(&rounded[at], count, sums);
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
        for number in 0..if F::Factors::PAIRED { count / 2 } else { count } {
            let products = if F::Factors::PAIRED {
                self.pair(activations, number)
            } else {
                self.single(activations, number, factors)
            };
            let factors = F::Factors::of(registers, factors, number);
            // By turns, so that one addition need not wait for the one before it.
            sums[number % 2] = registers.plus_times(sums[number % 2], products, factors);
        }
        if F::OFFSETS {
            sums[2] = self.offsets.add(registers, activations, sums[2]);
        }
    }

    /// The products of one register of bytes.
    #[inline(always)]
    fn single(
        &self,
        activations: &Activations,
        number: usize,
        factors: <F::Factors as Factors>::In<R>,
    ) -> R::Eight {
        let (bytes, numbers) = ((self.packed)(number), &activations.numbers[number]);
        match F::SIGNED {
            true => self.registers.signed_products(bytes, numbers),
            false => F::Factors::products(self.registers, factors, number, bytes, numbers),
        }
    }

    /// The products of two registers of bytes.
    #[inline(always)]
    fn pair(&self, activations: &Activations, number: usize) -> R::Eight {
        let [first, second] = [2 * number, 2 * number + 1];
        let bytes = [(self.packed)(first), (self.packed)(second)];
        let numbers = [&activations.paired[first], &activations.paired[second]];
        let sizes = [&activations.paired_sizes[first], &activations.paired_sizes[second]];
        match F::SIGNED {
            true => self.registers.signed_paired_products(bytes, numbers, sizes),
            false => self.registers.paired_products(bytes, numbers),
        }
    }
}

/// Returns the last blocks of a row, and the number of their registers of bytes. Where they must be pairs, a block of zeros,
/// which is copied together with them to `last`, fills them up.
#[inline(always)]
fn in_pairs<'a, F: Packed>(blocks: &'a [u8], last: &'a mut [u8; LARGEST_CHUNK]) -> (&'a [u8], usize) {
    let count = REGISTERS * blocks.len() / F::CHUNK_BYTES;
    if !F::Factors::PAIRED || count.is_multiple_of(2) {
        return (blocks, count);
    }
    last[..blocks.len()].copy_from_slice(blocks);
    (&last[..blocks.len() + F::CHUNK_BYTES / REGISTERS], count + 1)
}

#[inline(always)]
fn total<R: ByteRegisters>(registers: R, sums: [R::Eight; 3]) -> f32 {
    registers.total(registers.plus(registers.plus(sums[0], sums[1]), sums[2]))
}

struct PlainRows<'a, R> {
    rows: Rows<'a, R>,
    plain: Plain,
}

impl<R: ByteRegisters> Work for PlainRows<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Rows { registers, bytes, size, vectors, out } = self.rows;
        let (rows, columns) = (out.len() / vectors.count, vectors.numbers.len() / vectors.count);
        for (number, row) in bytes.chunks_exact(size).enumerate() {
            for vector in 0..vectors.count {
                let numbers = &vectors.numbers[vector * columns..][..columns];
                out[vector * rows + number] = self.plain.product(registers, row, numbers);
            }
        }
    }
}
