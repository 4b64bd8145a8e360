//! A small matrix of `f32` numbers, multiplied on one core.

use pulp::Simd;

use crate::inference::kernels::math::{Kernel, LANES, Lanes, VECTORS_PER_PASS, dispatch, registers};

/// Groups of rows that are multiplied at a time by a single vector. With fewer, additions would wait for each other.
const GROUPS: usize = 4;

/// A matrix of `rows` outputs by `columns` inputs.
pub(crate) struct Dense {
    pub rows: usize,
    columns: usize,
    /// A group holds [`LANES`] rows, column by column. The last group is filled up with zeros.
    groups: Vec<Lanes>,
}

impl Dense {
    /// Takes the rows one after the other.
    pub(crate) fn new(numbers: &[f32], rows: usize, columns: usize) -> Self {
        let mut groups = vec![[0.0; LANES]; rows.div_ceil(LANES) * columns];
        for (row, numbers) in numbers.chunks_exact(columns).enumerate() {
            let group = &mut groups[row / LANES * columns..][..columns];
            for (to, number) in group.iter_mut().zip(numbers) {
                to[row % LANES] = *number;
            }
        }
        Self { rows, columns, groups }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.groups[..])
    }

    /// Returns some rows, one after the other.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub(crate) fn lookup(&self, rows: &[u32]) -> Vec<f32> {
        let mut found = Vec::with_capacity(rows.len() * self.columns);
        for &row in rows {
            let row = row as usize;
            assert!(row < self.rows, "no row {row}");
            let group = &self.groups[row / LANES * self.columns..][..self.columns];
            found.extend(group.iter().map(|numbers| numbers[row % LANES]));
        }
        found
    }

    /// Multiplies several vectors, given one after the other.
    pub(crate) fn apply(&self, vectors: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; vectors.len() / self.columns * self.rows];
        dispatch(Product { matrix: self, vectors, out: &mut out });
        out
    }
}

struct Product<'a> {
    matrix: &'a Dense,
    vectors: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const W: usize>(mut self, simd: S) {
        let groups = self.matrix.rows.div_ceil(LANES);
        let count = self.vectors.len() / self.matrix.columns;
        if count == 1 {
            let whole = groups - groups % GROUPS;
            for group in (0..whole).step_by(GROUPS) {
                self.block::<S, W, 1, GROUPS>(simd, group, 0);
            }
            for group in whole..groups {
                self.block::<S, W, 1, 1>(simd, group, 0);
            }
            return;
        }
        // A group stays in the cache until all vectors have been multiplied by it.
        for group in 0..groups {
            let mut first = 0;
            while first < count {
                first += match count - first {
                    1 => self.block::<S, W, 1, 1>(simd, group, first),
                    2 | 3 => self.block::<S, W, 2, 1>(simd, group, first),
                    4 | 5 => self.block::<S, W, 4, 1>(simd, group, first),
                    _ => self.block::<S, W, VECTORS_PER_PASS, 1>(simd, group, first),
                };
            }
        }
    }
}

impl Product<'_> {
    /// `V` vectors by `G` groups of rows. Returns `V`.
    #[inline(always)]
    fn block<S: Simd, const W: usize, const V: usize, const G: usize>(
        &mut self,
        simd: S,
        group: usize,
        first: usize,
    ) -> usize {
        let (rows, columns) = (self.matrix.rows, self.matrix.columns);
        let vectors: [&[f32]; V] =
            std::array::from_fn(|at| &self.vectors[(first + at) * columns..][..columns]);
        let groups: [&[Lanes]; G] =
            std::array::from_fn(|at| &self.matrix.groups[(group + at) * columns..][..columns]);
        let mut sums = [[[simd.splat_f32s(0.0); W]; G]; V];
        for column in 0..columns {
            for v in 0..V {
                let factor = simd.splat_f32s(vectors[v][column]);
                for g in 0..G {
                    let numbers = registers::<S, W>(&groups[g][column]);
                    for w in 0..W {
                        sums[v][g][w] = simd.mul_add_e_f32s(factor, numbers[w], sums[v][g][w]);
                    }
                }
            }
        }
        for (out, sums) in self.out[first * rows..].chunks_exact_mut(rows).zip(&sums) {
            for (out, sums) in out[group * LANES..].chunks_mut(LANES).zip(sums) {
                let mut lanes = [0.0; LANES];
                S::as_mut_simd_f32s(&mut lanes).0.copy_from_slice(sums);
                out.copy_from_slice(&lanes[..out.len()]);
            }
        }
        V
    }
}

#[cfg(test)]
mod tests {
    use pulp::{Scalar, Scalar128b, Scalar256b, Scalar512b, Simd};

    use super::{Dense, Product};
    use crate::inference::kernels::math::with_simd;

    fn apply_in<S: Simd>(simd: S, matrix: &Dense, vectors: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; vectors.len() / matrix.columns * matrix.rows];
        with_simd(simd, Product { matrix, vectors, out: &mut out });
        out
    }

    #[test]
    fn multiplies_any_number_of_vectors_and_rows() {
        let number = |at: usize| ((at * 7919) % 101) as f32 - 50.0;
        for (rows, columns) in [(1, 1), (16, 8), (37, 5), (70, 33)] {
            let numbers: Vec<f32> = (0..rows * columns).map(number).collect();
            let matrix = Dense::new(&numbers, rows, columns);
            for count in [1, 2, 5, 6, 7, 10, 15] {
                let vectors: Vec<f32> = (0..count * columns).map(|at| number(at + 3)).collect();
                // Whole numbers, and few: the sums are exact in any order.
                let mut expected = Vec::new();
                for vector in vectors.chunks_exact(columns) {
                    for row in numbers.chunks_exact(columns) {
                        expected.push(row.iter().zip(vector).map(|(left, right)| left * right).sum::<f32>());
                    }
                }
                let found = [
                    matrix.apply(&vectors),
                    apply_in(Scalar::new(), &matrix, &vectors),
                    apply_in(Scalar128b, &matrix, &vectors),
                    apply_in(Scalar256b, &matrix, &vectors),
                    apply_in(Scalar512b, &matrix, &vectors),
                ];
                for found in found {
                    assert_eq!(found, expected, "{rows} by {columns}, {count}");
                }
            }
            let last = u32::try_from(rows - 1).unwrap();
            assert_eq!(matrix.lookup(&[last]), numbers[(rows - 1) * columns..]);
        }
    }
}
