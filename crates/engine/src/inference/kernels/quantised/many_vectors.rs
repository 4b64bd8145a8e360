//! Many vectors by a matrix. Multiplying limits it: each row is decoded once for all vectors.

use super::{
    Products, Quantised,
    batch::{Batch, Group},
    chunk::{Chunk, LENGTH},
    formats::{Decode, Job},
    registers::{Portable, Registers, Widest, Work, widest},
};
use crate::inference::kernels::math::{LANES, Lanes, in_parallel};

/// Multiplies vectors on all cores.
pub(super) fn products(matrix: &Quantised, vectors: &Batch) -> Products {
    // As many rows as there are registers for their sums, besides those for what is multiplied.
    match widest() {
        #[cfg(target_arch = "x86_64")]
        Widest::Avx512(registers) => products_in::<_, 12, 2>(registers, matrix, vectors),
        #[cfg(target_arch = "x86_64")]
        Widest::Avx2(registers) => products_in::<_, 5, 1>(registers, matrix, vectors),
        Widest::Portable => products_in::<_, 4, 1>(Portable, matrix, vectors),
    }
}

/// Multiplies with this kind of registers, `N` rows and `G` groups of vectors at a time.
pub(super) fn products_in<R: Registers, const N: usize, const G: usize>(
    registers: R,
    matrix: &Quantised,
    vectors: &Batch,
) -> Products {
    let count = vectors.count;
    let mut out = vec![0.0; matrix.rows * count];
    in_parallel(&mut out, N * count, |index, out| {
        let rows = out.len() / count;
        let bytes = matrix.row_bytes(index * N, rows);
        matrix.format.with(Rows::<_, N, G> { registers, bytes, rows, vectors, out });
    });
    Products::new(out, matrix.rows, count, N)
}

/// At most `N` rows of a matrix, to be multiplied on one core.
struct Rows<'a, R, const N: usize, const G: usize> {
    registers: R,
    bytes: &'a [u8],
    rows: usize,
    vectors: &'a Batch,
    out: &'a mut [f32],
}

impl<R: Registers, const N: usize, const G: usize> Job for Rows<'_, R, N, G> {
    type Output = ();

    fn run<F: Decode>(self) {
        self.registers.vectorise(RowsOf::<R, F, N, G> { rows: self, format: std::marker::PhantomData });
    }
}

struct RowsOf<'a, R, F, const N: usize, const G: usize> {
    rows: Rows<'a, R, N, G>,
    format: std::marker::PhantomData<F>,
}

impl<R: Registers, F: Decode, const N: usize, const G: usize> Work for RowsOf<'_, R, F, N, G> {
    #[inline(always)]
    fn run(self) {
        let Rows { registers, bytes, rows, vectors, out } = self.rows;
        let size = bytes.len() / rows;
        let mut weights: [Chunk; N] = std::array::from_fn(|_| Chunk::default());
        let mut sums = vec![[[0.0; LANES]; N]; vectors.count.div_ceil(LANES)];
        for (number, chunk) in vectors.chunks.iter().enumerate() {
            let first = number * F::CHUNK_BYTES;
            for (row, weights) in bytes.chunks_exact(size).zip(&mut weights) {
                F::decode(registers, &row[first..size.min(first + F::CHUNK_BYTES)], weights);
            }
            let parts = chunk.length.div_ceil(32);
            let (whole, rest) = chunk.groups.as_chunks::<G>();
            let (sums, last) = sums.as_chunks_mut::<G>();
            for (groups, sums) in whole.iter().zip(sums) {
                multiply(registers, &weights, groups, parts, sums);
            }
            for (group, sums) in rest.iter().zip(last) {
                multiply(registers, &weights, std::array::from_ref(group), parts, std::array::from_mut(sums));
            }
        }
        for (vector, out) in out.chunks_exact_mut(rows).enumerate() {
            for (row, out) in out.iter_mut().enumerate() {
                *out = sums[vector / LANES][row][vector % LANES];
            }
        }
    }
}

/// Adds the products of `N` rows and `G` groups of vectors to their sums.
#[inline(always)]
fn multiply<R: Registers, const N: usize, const G: usize>(
    registers: R,
    weights: &[Chunk; N],
    groups: &[Group; G],
    parts: usize,
    sums: &mut [[Lanes; N]; G],
) {
    let mut products = [[registers.zero(); G]; N];
    for part in 0..parts.min(LENGTH / 32) {
        for pair in 0..16 {
            let mut activations = [registers.zero(); G];
            for group in 0..G {
                activations[group] = registers.load(&groups[group].pairs[part][pair]);
            }
            for row in 0..N {
                let numbers = &weights[row].groups[part];
                let weight = registers.splat([numbers[2 * pair], numbers[2 * pair + 1]]);
                for group in 0..G {
                    let sum = &mut products[row][group];
                    *sum = registers.multiply_add(*sum, activations[group], weight);
                }
            }
        }
    }
    for row in 0..N {
        let factor = registers.splat_float(weights[row].scale);
        for group in 0..G {
            let factor = registers.multiply(registers.load_floats(&groups[group].scales), factor);
            let sum = registers.load_floats(&sums[group][row]);
            let product = registers.to_floats(products[row][group]);
            sums[group][row] = registers.lanes(registers.multiply_add_floats(product, factor, sum));
        }
    }
}
