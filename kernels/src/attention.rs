//! Attention: each position looks at those before it.

use pulp::Simd;

use crate::{
    math::{LANES, Lanes, TOGETHER, Work, exp, halves, in_parallel, in_registers, registers, widen},
    memory::{Memory, padded},
};

/// Queries that are worked on together: what is read of the memory is used as many times.
const ROWS: usize = 24;
/// Products below which one core is faster than waking the others.
const FEW: usize = 1 << 18;

/// The queries of some positions of one layer.
pub struct Attention<'a> {
    /// Numbers of a head.
    pub head: usize,
    pub heads: usize,
    pub kv_heads: usize,
    /// The position of the first query.
    pub position: usize,
    /// Positions that are seen, the own among them.
    pub window: usize,
    pub scale: f32,
    /// Only on this core.
    pub alone: bool,
    pub memory: &'a Memory,
}

/// Writes keys and values of `count` positions from `position` on into the memory.
pub fn remember(
    memory: &mut Memory,
    keys: &[f32],
    values: &[f32],
    position: usize,
    count: usize,
    head: usize,
) {
    memory.reserve(position + count, head);
    let (heads, wide) = (memory.keys.len(), padded(head));
    let (keys, values) = (halves(keys), halves(values));
    for row in 0..count {
        let (tile, lane) = ((position + row) / LANES, (position + row) % LANES);
        for of in 0..heads {
            let from = (row * heads + of) * head;
            let tile = tile * LANES * wide..(tile + 1) * LANES * wide;
            let (to_keys, to_values) = (&mut memory.keys[of][tile.clone()], &mut memory.values[of][tile]);
            for number in 0..head {
                to_keys[number * LANES + lane] = keys[from + number];
            }
            for (chunk, values) in values[from..from + head].chunks(LANES).enumerate() {
                to_values[(chunk * LANES + lane) * LANES..][..values.len()].copy_from_slice(values);
            }
        }
    }
}

impl Attention<'_> {
    /// What `count` queries find: for each, the heads one after the other.
    pub fn of(&self, queries: &[f32], count: usize) -> Vec<f32> {
        self.found(queries, count, |block| in_registers(block))
    }

    fn found(&self, queries: &[f32], count: usize, run: impl Fn(Block) + Sync) -> Vec<f32> {
        let (head, wide) = (self.head, padded(self.head));
        let group = self.heads / self.kv_heads;
        // Of one head of keys: the queries of all its heads, position by position.
        let rows = count * group;
        let blocks = rows.div_ceil(ROWS);
        let size = ROWS * wide;
        let mut found = vec![0.0; self.kv_heads * blocks * size];
        let work = |number: usize, out: &mut [f32]| {
            let (kv_head, block) = (number / blocks, number % blocks);
            let first = block * ROWS;
            let rows = ROWS.min(rows - first);
            let mut asked = vec![0.0; size];
            for row in 0..rows {
                let (position, of) = ((first + row) / group, kv_head * group + (first + row) % group);
                let from = (position * self.heads + of) * head;
                for (to, from) in asked[row * wide..][..head].iter_mut().zip(&queries[from..][..head]) {
                    *to = from * self.scale;
                }
            }
            // One past the last position that each sees.
            let ends: Vec<usize> = (first..first + rows).map(|row| self.position + row / group + 1).collect();
            let memory = (&self.memory.keys[kv_head][..], &self.memory.values[kv_head][..]);
            run(Block { memory, wide, window: self.window, ends: &ends, asked: &asked, out });
        };
        if self.alone || rows * self.kv_heads * (self.position + count) * wide < FEW {
            found.chunks_mut(size).enumerate().for_each(|(number, out)| work(number, out));
        } else {
            in_parallel(&mut found, size, work);
        }
        let mut out = vec![0.0; count * self.heads * head];
        for (to, number) in out.chunks_exact_mut(head).zip(0..) {
            let (position, of) = (number / self.heads, number % self.heads);
            let (kv_head, row) = (of / group, position * group + of % group);
            to.copy_from_slice(&found[(kv_head * blocks * ROWS + row) * wide..][..head]);
        }
        out
    }
}

/// Some queries of one head over the positions that they see.
struct Block<'a> {
    /// The head's keys and values.
    memory: (&'a [u16], &'a [u16]),
    wide: usize,
    window: usize,
    /// By query.
    ends: &'a [usize],
    /// The queries, as wide as what is written to `out`.
    asked: &'a [f32],
    out: &'a mut [f32],
}

impl Work for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const W: usize>(self, simd: S) {
        let (wide, rows, size) = (self.wide, self.ends.len(), LANES * self.wide);
        let start = |row: usize| self.ends[row].saturating_sub(self.window);
        let (from, to) = (start(0) / LANES, self.ends[rows - 1].div_ceil(LANES));
        let length = (to - from) * LANES;
        let mut scores = vec![0.0; rows.next_multiple_of(TOGETHER) * length];
        let mut tile = vec![[0.0; LANES]; wide];
        for (number, keys) in self.memory.0[from * size..to * size].chunks_exact(size).enumerate() {
            widen(keys, tile.as_flattened_mut());
            let sums = &mut scores[number * LANES..];
            for first in (0..rows).step_by(TOGETHER) {
                let (asked, sums) = (&self.asked[first * wide..], &mut sums[first * length..]);
                match rows - first {
                    1 => products::<S, W, 1, 4>(simd, &tile, asked, sums, length),
                    2 => products::<S, W, 2, 2>(simd, &tile, asked, sums, length),
                    3 | 4 => products::<S, W, 4, 1>(simd, &tile, asked, sums, length),
                    _ => products::<S, W, TOGETHER, 1>(simd, &tile, asked, sums, length),
                }
            }
        }
        let mut totals = [0.0; ROWS];
        for (row, total) in totals[..rows].iter_mut().enumerate() {
            let seen = start(row) - from * LANES..self.ends[row] - from * LANES;
            *total = weigh(&mut scores[row * length..][..length], seen);
        }
        for (number, values) in self.memory.1[from * size..to * size].chunks_exact(size).enumerate() {
            widen(values, tile.as_flattened_mut());
            let weights = &scores[number * LANES..];
            for first in (0..rows).step_by(TOGETHER) {
                let (weights, out) = (&weights[first * length..], &mut self.out[first * wide..]);
                match rows - first {
                    1 => sums::<S, W, 1>(simd, &tile, weights, length, out),
                    2 => sums::<S, W, 2>(simd, &tile, weights, length, out),
                    3 | 4 => sums::<S, W, 4>(simd, &tile, weights, length, out),
                    _ => sums::<S, W, TOGETHER>(simd, &tile, weights, length, out),
                }
            }
        }
        for (out, total) in self.out.chunks_exact_mut(wide).zip(&totals[..rows]) {
            let scale = total.recip();
            out.iter_mut().for_each(|number| *number *= scale);
        }
    }
}

/// Each of `N` queries times each of the sixteen keys of a tile, in `P` partial sums: one addition need not wait for
/// the one before it, which is what takes the time where queries are few.
#[inline(always)]
fn products<S: Simd, const W: usize, const N: usize, const P: usize>(
    simd: S,
    keys: &[Lanes],
    asked: &[f32],
    out: &mut [f32],
    length: usize,
) {
    let asked: [&[f32]; N] = std::array::from_fn(|row| &asked[row * keys.len()..][..keys.len()]);
    let mut parts = [[[simd.splat_f32s(0.0); W]; P]; N];
    for (number, keys) in keys.as_chunks::<P>().0.iter().enumerate() {
        for part in 0..P {
            let keys = registers::<S, W>(&keys[part]);
            for row in 0..N {
                let factor = simd.splat_f32s(asked[row][number * P + part]);
                for lane in 0..W {
                    let sum = &mut parts[row][part][lane];
                    *sum = simd.mul_add_e_f32s(factor, keys[lane], *sum);
                }
            }
        }
    }
    for row in 0..N {
        let out = S::as_mut_simd_f32s(&mut out[row * length..][..LANES]).0;
        for lane in 0..W {
            let sums = std::array::from_fn::<_, P, _>(|part| parts[row][part][lane]);
            out[lane] = sums.into_iter().reduce(|sum, part| simd.add_f32s(sum, part)).unwrap_or(sums[0]);
        }
    }
}

/// Adds the sixteen values of a tile to each of `N` sums, as they are weighed.
#[inline(always)]
fn sums<S: Simd, const W: usize, const N: usize>(
    simd: S,
    values: &[Lanes],
    weights: &[f32],
    length: usize,
    out: &mut [f32],
) {
    let wide = values.len();
    let weights: [&[f32]; N] = std::array::from_fn(|row| &weights[row * length..][..LANES]);
    for (chunk, values) in values.as_chunks::<LANES>().0.iter().enumerate() {
        let mut sums: [[S::f32s; W]; N] = std::array::from_fn(|row| {
            let sums = S::as_simd_f32s(&out[row * wide + chunk * LANES..][..LANES]).0;
            std::array::from_fn(|lane| sums[lane])
        });
        for (position, values) in values.iter().enumerate() {
            let values = registers::<S, W>(values);
            for row in 0..N {
                let weight = simd.splat_f32s(weights[row][position]);
                for lane in 0..W {
                    sums[row][lane] = simd.mul_add_e_f32s(weight, values[lane], sums[row][lane]);
                }
            }
        }
        for row in 0..N {
            let out = S::as_mut_simd_f32s(&mut out[row * wide + chunk * LANES..][..LANES]).0;
            out.copy_from_slice(&sums[row]);
        }
    }
}

/// Makes weights of scores and returns their sum. What is not `seen` weighs nothing.
#[inline(always)]
fn weigh(scores: &mut [f32], seen: std::ops::Range<usize>) -> f32 {
    scores[..seen.start].fill(0.0);
    scores[seen.end..].fill(0.0);
    let scores = &mut scores[seen];
    let mut most = [f32::NEG_INFINITY; LANES];
    let chunks = scores.chunks_exact(LANES);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for chunk in chunks {
        for lane in 0..LANES {
            most[lane] = if chunk[lane] > most[lane] { chunk[lane] } else { most[lane] };
        }
    }
    let most = most.into_iter().fold(rest, f32::max);
    let mut sums = [0.0; LANES];
    let mut chunks = scores.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for lane in 0..LANES {
            chunk[lane] = exp(chunk[lane] - most);
            sums[lane] += chunk[lane];
        }
    }
    let mut sum = sums.iter().sum::<f32>();
    for score in chunks.into_remainder() {
        *score = exp(*score - most);
        sum += *score;
    }
    sum
}

#[cfg(test)]
mod tests {
    use pulp::{Scalar, Scalar128b, Scalar256b, Scalar512b};

    use super::*;
    use crate::math::in_those;

    /// What one query finds, number by number, in doubles.
    fn plainly(asked: &[f32], keys: &[f32], values: &[f32], scale: f32, head: usize) -> Vec<f32> {
        let score = |key: &[f32]| -> f64 {
            let products = asked.iter().zip(key).map(|(left, right)| f64::from(*left) * f64::from(*right));
            (products.sum::<f64>() * f64::from(scale)).exp()
        };
        let weights: Vec<f64> = keys.chunks_exact(head).map(score).collect();
        let total: f64 = weights.iter().sum();
        let number = |number: usize| {
            let parts = weights.iter().zip(values.chunks_exact(head));
            #[expect(clippy::cast_possible_truncation, reason = "compared as f32")]
            let found =
                (parts.map(|(weight, value)| weight * f64::from(value[number])).sum::<f64>() / total) as f32;
            found
        };
        (0..head).map(number).collect()
    }

    #[test]
    fn finds_what_plain_sums_find() {
        // Few digits, so that half precision holds them.
        let numbers = |count: usize, by: usize| -> Vec<f32> {
            (0..count).map(|at| ((at * by) % 61) as f32 / 32.0 - 1.0).collect()
        };
        let (kv_heads, scale) = (2, 0.3);
        for (head, group, count) in [(5, 1, 1), (32, 3, 1), (16, 1, 7), (20, 2, 13), (32, 1, 50)] {
            for (position, window) in [(0, usize::MAX), (21, usize::MAX), (40, 9)] {
                let (heads, seen) = (kv_heads * group, position + count);
                let keys = numbers(seen * kv_heads * head, 7);
                let values = numbers(seen * kv_heads * head, 11);
                let queries = numbers(count * heads * head, 13);
                let mut memory = Memory::new(kv_heads);
                remember(&mut memory, &keys, &values, 0, seen, head);
                let of = |list: &[f32], kv_head: usize, positions: std::ops::Range<usize>| -> Vec<f32> {
                    let at = |position: usize| (position * kv_heads + kv_head) * head;
                    positions.flat_map(|position| list[at(position)..][..head].to_vec()).collect()
                };
                let mut expected = Vec::new();
                for (number, asked) in queries.chunks_exact(head).enumerate() {
                    let (end, kv_head) = (position + number / heads + 1, number % heads / group);
                    let seen = end.saturating_sub(window)..end;
                    let (keys, values) = (of(&keys, kv_head, seen.clone()), of(&values, kv_head, seen));
                    expected.extend(plainly(asked, &keys, &values, scale, head));
                }
                for alone in [true, false] {
                    let memory = &memory;
                    let attention =
                        Attention { head, heads, kv_heads, position, window, scale, alone, memory };
                    let all = [
                        attention.of(&queries, count),
                        attention.found(&queries, count, |block| in_those(Scalar::new(), block)),
                        attention.found(&queries, count, |block| in_those(Scalar128b, block)),
                        attention.found(&queries, count, |block| in_those(Scalar256b, block)),
                        attention.found(&queries, count, |block| in_those(Scalar512b, block)),
                    ];
                    for found in all {
                        let apart = found.iter().zip(&expected).map(|(left, right)| (left - right).abs());
                        let worst = apart.fold(0.0, f32::max);
                        assert!(worst < 1e-5, "{worst}: {head}, {group}, {count} at {position}, {window}");
                    }
                }
            }
        }
    }
}
