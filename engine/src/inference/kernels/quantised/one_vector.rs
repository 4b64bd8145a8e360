//! One vector by a matrix. Memory bandwidth limits it: each byte of the matrix is read once and decoded in passing.

use super::{
    Chunk, Quantised,
    formats::{Decode, Job},
    registers::{Portable, Registers, Work},
};
use crate::inference::kernels::math::{cores, in_parallel};

/// Chunks of a matrix per core. A core that is held up leaves its remaining chunks to the others.
const CHUNKS_PER_CORE: usize = 8;

/// Rows that are multiplied together, so that one need not wait for the factors of another.
const ROWS: usize = 4;

/// Multiplies a vector on all cores.
pub(super) fn product(matrix: &Quantised, vector: &[Chunk]) -> Vec<f32> {
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
pub(super) fn product_in<R: Registers>(registers: R, matrix: &Quantised, vector: &[Chunk]) -> Vec<f32> {
    let mut out = vec![0.0; matrix.rows];
    let rows = matrix.rows.div_ceil(cores() * CHUNKS_PER_CORE).max(1);
    in_parallel(&mut out, rows, |index, out| {
        let bytes = matrix.row_bytes(index * rows, out.len());
        matrix.format.with(Rows { registers, bytes, vector, out });
    });
    out
}

/// Some rows of a matrix, to be multiplied on one core.
struct Rows<'a, R> {
    registers: R,
    bytes: &'a [u8],
    vector: &'a [Chunk],
    out: &'a mut [f32],
}

impl<R: Registers> Job for Rows<'_, R> {
    type Output = ();

    fn run<F: Decode>(self) {
        self.registers.vectorise(RowsOf::<R, F> { rows: self, format: std::marker::PhantomData });
    }
}

struct RowsOf<'a, R, F> {
    rows: Rows<'a, R>,
    format: std::marker::PhantomData<F>,
}

impl<R: Registers, F: Decode> Work for RowsOf<'_, R, F> {
    #[inline(always)]
    fn run(self) {
        let Rows { registers, bytes, vector, out } = self.rows;
        let size = bytes.len() / out.len().max(1);
        let whole = out.len() / ROWS * ROWS;
        for first in (0..whole).step_by(ROWS) {
            multiply::<R, F, ROWS>(registers, &bytes[first * size..], size, vector, &mut out[first..]);
        }
        for first in whole..out.len() {
            multiply::<R, F, 1>(registers, &bytes[first * size..], size, vector, &mut out[first..]);
        }
    }
}

/// Multiplies `N` rows of `size` bytes.
#[inline(always)]
fn multiply<R: Registers, F: Decode, const N: usize>(
    registers: R,
    bytes: &[u8],
    size: usize,
    vector: &[Chunk],
    out: &mut [f32],
) {
    let mut weights = Chunk::default();
    let mut sums = [registers.splat_float(0.0); N];
    for chunk in 0..vector.len() {
        let (activations, first) = (&vector[chunk], chunk * F::CHUNK_BYTES);
        let last = size.min(first + F::CHUNK_BYTES);
        let mut heads = [F::head(&bytes[first..last]); N];
        for row in 1..N {
            heads[row] = F::head(&bytes[row * size + first..row * size + last]);
        }
        for row in 0..N {
            F::numbers(registers, &bytes[row * size + first..row * size + last], &heads[row], &mut weights);
            let mut products = [registers.zero(); 2];
            for group in 0..weights.groups.len() {
                let left = registers.load(&weights.groups[group]);
                let right = registers.load(&activations.groups[group]);
                products[group % 2] = registers.multiply_add(products[group % 2], left, right);
            }
            let factor = registers.splat_float(weights.scale * activations.scale);
            sums[row] = registers.multiply_add_floats(registers.to_floats(products[0]), factor, sums[row]);
            sums[row] = registers.multiply_add_floats(registers.to_floats(products[1]), factor, sums[row]);
        }
    }
    for row in 0..N {
        out[row] = registers.lanes(sums[row]).into_iter().sum();
    }
}
