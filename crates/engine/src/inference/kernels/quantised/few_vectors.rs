//! A few vectors by a matrix. Each byte of the matrix is read once and multiplied as it is.
//!
//! Each vector is multiplied by the same operations in the same order as if it were alone, so that the products are the same
//! to the last bit. What a step computes therefore does not depend on the number of tokens that it reads.

use std::marker::PhantomData;

use super::{
    FEW, Input, Products, Quantised,
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

/// Multiplies vectors on all cores.
pub(super) fn products(matrix: &Quantised, input: &Input<'_>) -> Products {
    match widest() {
        #[cfg(target_arch = "x86_64")]
        Widest::Avx512(registers) => products_in(registers, matrix, input),
        #[cfg(target_arch = "x86_64")]
        Widest::Avx2(registers) => products_in(registers, matrix, input),
        Widest::Portable => products_in(Portable, matrix, input),
    }
}

/// Multiplies vectors with this kind of registers.
pub(super) fn products_in<R: ByteRegisters>(registers: R, matrix: &Quantised, input: &Input<'_>) -> Products {
    let count = input.count;
    matrix.format.with_packed(Rounding(input));
    let mut out = vec![0.0; matrix.rows * count];
    let block = matrix.rows.div_ceil(cores() * CHUNKS_PER_CORE).max(1);
    in_parallel(&mut out, block * count, |index, out| {
        let rows = out.len() / count;
        let bytes = matrix.row_bytes(index * block, rows);
        let rows = Rows { registers, size: bytes.len() / rows, bytes, input, out };
        match matrix.format.plain() {
            Some(plain) => registers.vectorise(PlainRows { rows, plain }),
            None => matrix.format.with_packed(rows),
        }
    });
    Products::new(out, matrix.rows, count, block)
}

/// Rounds vectors as a format wants them.
struct Rounding<'a>(&'a Input<'a>);

impl PackedJob for Rounding<'_> {
    fn run<F: Packed>(self) {
        self.0.rounded::<<F::Factors as Factors>::Activations>();
    }
}

/// Some rows of a matrix, of `size` bytes each, to be multiplied on one core. The products go to `out`, those of each vector
/// one after the other.
struct Rows<'a, R> {
    registers: R,
    bytes: &'a [u8],
    size: usize,
    input: &'a Input<'a>,
    out: &'a mut [f32],
}

impl<R: ByteRegisters> PackedJob for Rows<'_, R> {
    fn run<F: Packed>(self) {
        match self.input.count {
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
        let Rows { registers, bytes, size, input, out } = self.rows;
        let Some(vector) = input.rounded::<<F::Factors as Factors>::Activations>().first() else { return };
        let (zero, mut last) = (registers.eight(&[0.0; 8]), [0; LARGEST_CHUNK]);
        for (row, out) in bytes.chunks_exact(size).zip(out) {
            let mut sums = [zero; 3];
            // It is compiled for a whole chunk, without a loop.
            let whole = row.chunks_exact(F::CHUNK_BYTES);
            let rest = whole.remainder();
            for (blocks, activations) in whole.zip(vector) {
                add::<R, F>(registers, &blocks[..F::CHUNK_BYTES], REGISTERS, activations, &mut sums);
            }
            if let Some(activations) = vector.last()
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
        let Rows { registers, bytes, size, input, out } = self.rows;
        let vectors = input.rounded();
        let (zero, mut last) = (registers.eight(&[0.0; 8]), [0; LARGEST_CHUNK]);
        let rows = out.len() / vectors.len();
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
            for vector in 0..vectors.len() {
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
    activations: &<F::Factors as Factors>::Activations,
    sums: &mut [R::Eight; 3],
) {
    registers.fetch_ahead(blocks);
    F::factors(registers, blocks).add_products::<R, F>(
        registers,
        #[inline(always)]
        |number| F::bytes(registers, blocks, number),
        activations,
        count,
        sums,
    );
}

/// As [`add`], for the chunk `at` of each vector.
#[inline(always)]
fn add_each<R: ByteRegisters, F: Packed>(
    registers: R,
    blocks: &[u8],
    count: usize,
    vectors: &[Vec<<F::Factors as Factors>::Activations>],
    at: usize,
    sums: &mut [[R::Eight; 3]; FEW],
) {
    registers.fetch_ahead(blocks);
    let mut bytes = [F::bytes(registers, blocks, 0); REGISTERS];
    for number in 1..count {
        bytes[number] = F::bytes(registers, blocks, number);
    }
    let factors = F::factors(registers, blocks);
    for (vector, sums) in vectors.iter().zip(sums) {
        factors.add_products::<R, F>(
            registers,
            #[inline(always)]
            |number| bytes[number],
            &vector[at],
            count,
            sums,
        );
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
        let Rows { registers, bytes, size, input, out } = self.rows;
        let (rows, columns) = (out.len() / input.count, input.vectors.len() / input.count);
        for (number, row) in bytes.chunks_exact(size).enumerate() {
            for vector in 0..input.count {
                let numbers = &input.vectors[vector * columns..][..columns];
                out[vector * rows + number] = self.plain.product(registers, row, numbers);
            }
        }
    }
}
