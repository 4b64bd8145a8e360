//! A small matrix as plain numbers, multiplied by one core.

use crate::math::{LANES, Lanes, accumulate, widest};

/// Vectors that are multiplied together, and groups of rows for one vector: as many sums as the registers of AVX2
/// hold, and more than an addition takes cycles.
const TOGETHER: usize = 4;

/// `rows` outputs by `columns` inputs.
pub struct Dense {
    rows: usize,
    columns: usize,
    /// [`LANES`] rows to a group, the last one filled up with zeros; in a group, column by column.
    groups: Vec<Lanes>,
}

impl Dense {
    /// `numbers` are the rows one after the other.
    pub fn new(numbers: &[f32], rows: usize, columns: usize) -> Self {
        let mut groups = vec![[0.0; LANES]; rows.div_ceil(LANES) * columns];
        for (row, numbers) in numbers.chunks_exact(columns).enumerate() {
            let group = &mut groups[row / LANES * columns..][..columns];
            for (to, number) in group.iter_mut().zip(numbers) {
                to[row % LANES] = *number;
            }
        }
        Self { rows, columns, groups }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.groups[..])
    }

    /// Rows, one after the other.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    pub fn lookup(&self, rows: &[u32]) -> Vec<f32> {
        let mut found = Vec::with_capacity(rows.len() * self.columns);
        for &row in rows {
            let row = row as usize;
            assert!(row < self.rows, "no row {row}");
            let group = &self.groups[row / LANES * self.columns..][..self.columns];
            found.extend(group.iter().map(|numbers| numbers[row % LANES]));
        }
        found
    }

    /// Multiplies vectors that stand one after the other.
    pub fn apply(&self, vectors: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; vectors.len() / self.columns * self.rows];
        let groups = self.rows.div_ceil(LANES);
        widest(
            #[inline(always)]
            || {
                let mut vectors = vectors;
                let mut out = &mut out[..];
                while vectors.len() >= TOGETHER * self.columns {
                    for group in 0..groups {
                        self.product::<TOGETHER, 1>(group, vectors, out);
                    }
                    vectors = &vectors[TOGETHER * self.columns..];
                    out = &mut out[TOGETHER * self.rows..];
                }
                for (vector, out) in vectors.chunks_exact(self.columns).zip(out.chunks_exact_mut(self.rows)) {
                    let whole = groups - groups % TOGETHER;
                    for group in (0..whole).step_by(TOGETHER) {
                        self.product::<1, TOGETHER>(group, vector, out);
                    }
                    for group in whole..groups {
                        self.product::<1, 1>(group, vector, out);
                    }
                }
            },
        );
        out
    }

    /// The first `V` of `vectors` by `G` groups of rows.
    #[inline(always)]
    fn product<const V: usize, const G: usize>(&self, group: usize, vectors: &[f32], out: &mut [f32]) {
        let vectors: [&[f32]; V] = std::array::from_fn(|at| &vectors[at * self.columns..][..self.columns]);
        let groups: [&[Lanes]; G] =
            std::array::from_fn(|at| &self.groups[(group + at) * self.columns..][..self.columns]);
        let mut sums = [[[0.0; LANES]; G]; V];
        for column in 0..self.columns {
            for (of, sums) in vectors.iter().zip(&mut sums) {
                for (numbers, sums) in groups.iter().zip(sums) {
                    accumulate(sums, of[column], &numbers[column]);
                }
            }
        }
        for (out, sums) in out.chunks_exact_mut(self.rows).zip(&sums) {
            for (out, sums) in out[group * LANES..].chunks_mut(LANES).zip(sums) {
                out.copy_from_slice(&sums[..out.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dense;

    #[test]
    fn multiplies_any_number_of_vectors_and_rows() {
        let number = |at: usize| ((at * 7919) % 101) as f32 - 50.0;
        for (rows, columns) in [(1, 1), (16, 8), (37, 5), (70, 33)] {
            let numbers: Vec<f32> = (0..rows * columns).map(number).collect();
            let matrix = Dense::new(&numbers, rows, columns);
            for count in [1, 3, 4, 9] {
                let vectors: Vec<f32> = (0..count * columns).map(|at| number(at + 3)).collect();
                // Whole numbers, and few: the sums are exact in any order.
                let mut expected = Vec::new();
                for vector in vectors.chunks_exact(columns) {
                    for row in numbers.chunks_exact(columns) {
                        expected.push(row.iter().zip(vector).map(|(left, right)| left * right).sum::<f32>());
                    }
                }
                assert_eq!(matrix.apply(&vectors), expected, "{rows} by {columns}, {count}");
            }
            let last = u32::try_from(rows - 1).unwrap();
            assert_eq!(matrix.lookup(&[last]), numbers[(rows - 1) * columns..]);
        }
    }
}
