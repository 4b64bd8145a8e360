//! The products of several vectors with a matrix, before they are put in order.

use std::ops::Range;

use crate::inference::kernels::math::in_parallel;

/// Numbers from which on several cores put them in order.
const MANY: usize = 1 << 16;

/// A product for each row of a matrix and each of `count` vectors.
pub(crate) struct Products {
    /// By block of rows, then by vector, then by row.
    numbers: Vec<f32>,
    rows: usize,
    count: usize,
    block: usize,
}

impl Products {
    /// `block` is the number of rows of each block but the last.
    pub(super) fn new(numbers: Vec<f32>, rows: usize, count: usize, block: usize) -> Self {
        debug_assert_eq!(numbers.len(), rows * count);
        Self { numbers, rows, count, block: block.max(1) }
    }

    /// Takes the products of each vector one after the other.
    pub(crate) fn in_order(numbers: Vec<f32>, rows: usize) -> Self {
        let count = numbers.len() / rows.max(1);
        Self::new(numbers, rows, count, rows)
    }

    /// Returns the products of all rows: those of each vector one after the other.
    pub(crate) fn all(self) -> Vec<f32> {
        if self.count == 1 || self.rows <= self.block { self.numbers } else { self.of(0..self.rows) }
    }

    /// Returns the products of some rows.
    pub(crate) fn of(&self, rows: Range<usize>) -> Vec<f32> {
        let size = rows.len();
        let mut found = vec![0.0; size * self.count];
        if size == 0 {
            return found;
        }
        let put = |first: usize, to: &mut [f32]| {
            for (vector, to) in to.chunks_exact_mut(size).enumerate() {
                self.put(first + vector, rows.clone(), to);
            }
        };
        if found.len() < MANY {
            put(0, &mut found);
        } else {
            let vectors = self.count.div_ceil(8);
            in_parallel(&mut found, vectors * size, |chunk, to| put(chunk * vectors, to));
        }
        found
    }

    /// Puts the products of one vector in order.
    fn put(&self, vector: usize, rows: Range<usize>, mut to: &mut [f32]) {
        let mut row = rows.start;
        while !to.is_empty() {
            let first = row / self.block * self.block;
            let length = self.block.min(self.rows - first);
            let from = &self.numbers[first * self.count + vector * length..][row - first..length];
            let (now, later) = to.split_at_mut(from.len().min(to.len()));
            now.copy_from_slice(&from[..now.len()]);
            row += now.len();
            to = later;
        }
    }
}
