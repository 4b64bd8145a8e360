//! Products of vectors with a large quantised matrix, in the layout of the GGUF file.
//!
//! The weights stay as the file has them, so that they take no more memory than there and one token reads no more bytes
//! than it must.
//!
//! For several vectors they are decoded 256 numbers of a row at a time, to whole numbers of 13 bits and one factor; vectors
//! are rounded to 12 bits and one factor for as many numbers. Then 256 products fit into a sum of 32 bits, and one
//! instruction of AVX2 or AVX-512 multiplies and adds them in pairs. The rounding is finer than llama.cpp's, which rounds
//! vectors to eight bits.
//!
//! For one vector or a few, decoding would take longer than all else. They are rounded to eight bits, as llama.cpp does, and
//! multiplied by the numbers that the blocks have.

#![expect(clippy::needless_range_loop, reason = "what is not a loop over indices is not always inlined")]

mod activations;
mod batch;
mod chunk;
mod few_vectors;
mod formats;
mod many_vectors;
mod products;
mod registers;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use activations::{Activations, BlockActivations, GroupActivations};
use batch::Batch;

use super::FEW;

pub(crate) use formats::Format;
pub(crate) use products::Products;

/// A matrix of `rows` outputs by `columns` inputs.
pub(crate) struct Quantised {
    format: Format,
    pub rows: usize,
    columns: usize,
    /// Row by row, as in the file.
    bytes: Vec<u8>,
}

impl Quantised {
    /// # Panics
    ///
    /// If there are more or fewer bytes than the format says.
    pub(crate) fn new(format: Format, rows: usize, columns: usize, bytes: Vec<u8>) -> Self {
        assert_eq!(bytes.len(), rows * format.row_bytes(columns), "{rows} by {columns} in {format:?}");
        Self { format, rows, columns, bytes }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Multiplies vectors on all cores.
    pub(crate) fn apply(&self, input: &Input<'_>) -> Products {
        if input.count > FEW {
            let batch = input.batch.get_or_init(|| Batch::new(input.vectors, self.columns));
            return many_vectors::products(self, batch);
        }
        few_vectors::products(self, input)
    }

    /// Returns some rows, one after the other.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub(crate) fn lookup(&self, rows: &[u32]) -> Vec<f32> {
        let mut found = Vec::with_capacity(rows.len() * self.columns);
        for &row in rows {
            found.extend(self.format.numbers(self.row_bytes(row as usize, 1)));
        }
        found
    }

    /// The bytes of `count` rows.
    fn row_bytes(&self, first: usize, count: usize) -> &[u8] {
        let size = self.format.row_bytes(self.columns);
        &self.bytes[first * size..][..count * size]
    }
}

/// Vectors, one after the other, which are rounded when the first matrix wants them.
pub(crate) struct Input<'a> {
    pub vectors: &'a [f32],
    pub count: usize,
    groups: OnceLock<Vec<Vec<GroupActivations>>>,
    blocks: OnceLock<Vec<Vec<BlockActivations>>>,
    batch: OnceLock<Batch>,
}

impl<'a> Input<'a> {
    pub(crate) fn new(vectors: &'a [f32], count: usize) -> Self {
        let (groups, blocks, batch) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { vectors, count, groups, blocks, batch }
    }

    /// The vectors as bytes, in the form that a format wants.
    fn rounded<A: Activations>(&self) -> &[Vec<A>] {
        let columns = (self.vectors.len() / self.count).max(1);
        A::of_input(self).get_or_init(|| self.vectors.chunks_exact(columns).map(A::of).collect())
    }
}
