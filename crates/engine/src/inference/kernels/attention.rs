//! Attention: each position looks at those before it.

use std::ops::Range;

use pulp::Simd;

use super::{
    FEW,
    kv_cache::{KvCache, padded},
    math::{Kernel, LANES, Lanes, VECTORS_PER_PASS, dispatch, exp, from_halves, in_parallel, registers},
};

/// Queries per block. What is read of the cache is used for all of them.
const ROWS: usize = 24;
/// Products below which one core is faster than waking the others.
const MIN_PARALLEL_PRODUCTS: usize = 1 << 18;

/// The attention of one layer over some positions.
pub(crate) struct Attention<'a> {
    /// Numbers of a head.
    pub head_size: usize,
    pub heads: usize,
    pub kv_heads: usize,
    /// The position of the first query.
    pub position: usize,
    /// The number of positions that each query sees, its own included.
    pub window: usize,
    /// The factor of each query.
    pub scale: f32,
    /// Use this core only.
    pub single_threaded: bool,
    pub cache: &'a KvCache,
}

impl Attention<'_> {
    /// Computes the outputs of `count` queries: for each query, its heads one after the other.
    pub(crate) fn apply(&self, queries: &[f32], count: usize) -> Vec<f32> {
        self.run(queries, count, |block| dispatch(block))
    }

    fn run(&self, queries: &[f32], count: usize, run_block: impl Fn(Block) + Sync) -> Vec<f32> {
        let (head_size, padded_size) = (self.head_size, padded(self.head_size));
        // The query heads that share one head of keys form the rows of its blocks, position by position. A few positions have
        // blocks of their own, so that each is computed as if it were alone.
        let group = self.heads / self.kv_heads;
        let parts = if count <= FEW { count } else { 1 };
        let part_rows = count * group / parts;
        let part_blocks = part_rows.div_ceil(ROWS);
        let (rows, blocks) = (count * group, parts * part_blocks);
        let block_size = ROWS * padded_size;
        let mut outputs = vec![0.0; self.kv_heads * blocks * block_size];
        let work = |index: usize, out: &mut [f32]| {
            let (kv_head, block) = (index / blocks, index % blocks);
            let part = block / part_blocks * part_rows;
            let first = part + block % part_blocks * ROWS;
            let rows = first..(first + ROWS).min(part + part_rows);
            let queries = self.block_queries(queries, kv_head, rows.clone());
            let ends: Vec<usize> = rows.map(|row| self.position + row / group + 1).collect();
            run_block(Block {
                keys: &self.cache.keys[kv_head],
                values: &self.cache.values[kv_head],
                padded_size,
                window: self.window,
                ends: &ends,
                queries: &queries,
                out,
            });
        };
        let products = rows * self.kv_heads * (self.position + count) * padded_size;
        if self.single_threaded || products < MIN_PARALLEL_PRODUCTS {
            outputs.chunks_mut(block_size).enumerate().for_each(|(index, out)| work(index, out));
        } else {
            in_parallel(&mut outputs, block_size, work);
        }
        let mut out = vec![0.0; count * self.heads * head_size];
        for (to, number) in out.chunks_exact_mut(head_size).zip(0..) {
            let (position, head) = (number / self.heads, number % self.heads);
            let (kv_head, row) = (head / group, position * group + head % group);
            let block = kv_head * blocks + row / part_rows * part_blocks;
            to.copy_from_slice(&outputs[(block * ROWS + row % part_rows) * padded_size..][..head_size]);
        }
        out
    }

    /// Copies the queries of some rows of a head of keys, scaled and padded.
    fn block_queries(&self, queries: &[f32], kv_head: usize, rows: Range<usize>) -> Vec<f32> {
        let (head_size, padded_size, group) =
            (self.head_size, padded(self.head_size), self.heads / self.kv_heads);
        let mut block = vec![0.0; ROWS * padded_size];
        for (to, row) in block.chunks_exact_mut(padded_size).zip(rows) {
            let (position, head) = (row / group, kv_head * group + row % group);
            let from = (position * self.heads + head) * head_size;
            for (to, from) in to[..head_size].iter_mut().zip(&queries[from..][..head_size]) {
                *to = from * self.scale;
            }
        }
        block
    }
}

/// Some queries of one head of keys over the positions that they see.
struct Block<'a> {
    keys: &'a [u16],
    values: &'a [u16],
    /// Numbers of a head with its padding.
    padded_size: usize,
    window: usize,
    /// By query, one past the last position that it sees.
    ends: &'a [usize],
    queries: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const W: usize>(self, simd: S) {
        let (padded_size, rows, tile_size) = (self.padded_size, self.ends.len(), LANES * self.padded_size);
        let start = |row: usize| self.ends[row].saturating_sub(self.window);
        let (from, to) = (start(0) / LANES, self.ends[rows - 1].div_ceil(LANES));
        let length = (to - from) * LANES;
        let mut scores = vec![0.0; rows.next_multiple_of(VECTORS_PER_PASS) * length];
        let mut tile = vec![[0.0; LANES]; padded_size];
        for (number, keys) in self.keys[from * tile_size..to * tile_size].chunks_exact(tile_size).enumerate()
        {
            from_halves(keys, tile.as_flattened_mut());
            let scores = &mut scores[number * LANES..];
            for first in (0..rows).step_by(VECTORS_PER_PASS) {
                let (queries, scores) = (&self.queries[first * padded_size..], &mut scores[first * length..]);
                match rows - first {
                    1 => products::<S, W, 1, 4>(simd, &tile, queries, scores, length),
                    2 => products::<S, W, 2, 2>(simd, &tile, queries, scores, length),
                    3 | 4 => products::<S, W, 4, 1>(simd, &tile, queries, scores, length),
                    _ => products::<S, W, VECTORS_PER_PASS, 1>(simd, &tile, queries, scores, length),
                }
            }
        }
        let mut totals = [0.0; ROWS];
        for (row, total) in totals[..rows].iter_mut().enumerate() {
            let visible = start(row) - from * LANES..self.ends[row] - from * LANES;
            *total = softmax_weights(&mut scores[row * length..][..length], visible);
        }
        for (number, values) in
            self.values[from * tile_size..to * tile_size].chunks_exact(tile_size).enumerate()
        {
            from_halves(values, tile.as_flattened_mut());
            let weights = &scores[number * LANES..];
            for first in (0..rows).step_by(VECTORS_PER_PASS) {
                let (weights, out) = (&weights[first * length..], &mut self.out[first * padded_size..]);
                match rows - first {
                    1 => weighted_sums::<S, W, 1>(simd, &tile, weights, length, out),
                    2 => weighted_sums::<S, W, 2>(simd, &tile, weights, length, out),
                    3 | 4 => weighted_sums::<S, W, 4>(simd, &tile, weights, length, out),
                    _ => weighted_sums::<S, W, VECTORS_PER_PASS>(simd, &tile, weights, length, out),
                }
            }
        }
        for (out, total) in self.out.chunks_exact_mut(padded_size).zip(&totals[..rows]) {
            let scale = total.recip();
            out.iter_mut().for_each(|number| *number *= scale);
        }
    }
}

/// Multiplies each of `N` queries by each of the sixteen keys of a tile. With `P` partial sums an addition need not wait
/// for the one before it, which would take most of the time where queries are few.
#[inline(always)]
fn products<S: Simd, const W: usize, const N: usize, const P: usize>(
    simd: S,
    keys: &[Lanes],
    queries: &[f32],
    out: &mut [f32],
    length: usize,
) {
    let queries: [&[f32]; N] = std::array::from_fn(|row| &queries[row * keys.len()..][..keys.len()]);
    let mut parts = [[[simd.splat_f32s(0.0); W]; P]; N];
    for (number, keys) in keys.as_chunks::<P>().0.iter().enumerate() {
        for part in 0..P {
            let keys = registers::<S, W>(&keys[part]);
            for row in 0..N {
                let factor = simd.splat_f32s(queries[row][number * P + part]);
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

/// Adds the sixteen values of a tile to each of `N` sums, multiplied by their weights.
#[inline(always)]
fn weighted_sums<S: Simd, const W: usize, const N: usize>(
    simd: S,
    values: &[Lanes],
    weights: &[f32],
    length: usize,
    out: &mut [f32],
) {
    let padded_size = values.len();
    let weights: [&[f32]; N] = std::array::from_fn(|row| &weights[row * length..][..LANES]);
    for (chunk, values) in values.as_chunks::<LANES>().0.iter().enumerate() {
        let mut sums: [[S::f32s; W]; N] = std::array::from_fn(|row| {
            let sums = S::as_simd_f32s(&out[row * padded_size + chunk * LANES..][..LANES]).0;
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
            let out = S::as_mut_simd_f32s(&mut out[row * padded_size + chunk * LANES..][..LANES]).0;
            out.copy_from_slice(&sums[row]);
        }
    }
}

/// Turns scores into weights, which are not normalised yet, and returns their sum. Only `visible` positions have weight.
#[inline(always)]
fn softmax_weights(scores: &mut [f32], visible: Range<usize>) -> f32 {
    scores[..visible.start].fill(0.0);
    scores[visible.end..].fill(0.0);
    let scores = &mut scores[visible];
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
    use crate::inference::kernels::math::with_simd;

    /// Computes the output of one query number by number in doubles.
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
                let mut cache = KvCache::new(kv_heads);
                cache.append(&keys, &values, 0, head);
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
                for single_threaded in [true, false] {
                    let cache = &cache;
                    let attention = Attention {
                        head_size: head,
                        heads,
                        kv_heads,
                        position,
                        window,
                        scale,
                        single_threaded,
                        cache,
                    };
                    let all = [
                        attention.apply(&queries, count),
                        attention.run(&queries, count, |block| with_simd(Scalar::new(), block)),
                        attention.run(&queries, count, |block| with_simd(Scalar128b, block)),
                        attention.run(&queries, count, |block| with_simd(Scalar256b, block)),
                        attention.run(&queries, count, |block| with_simd(Scalar512b, block)),
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
