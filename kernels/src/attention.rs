//! Attention: each position looks at those before it.

use crate::{
    math::{LANES, Lanes, accumulate, exp, half, halves, in_parallel, widest},
    memory::{Memory, padded},
};

/// Queries that are worked on together: what is read of the memory is used as many times.
const ROWS: usize = 8;
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
    for row in 0..count {
        let (tile, lane) = ((position + row) / LANES, (position + row) % LANES);
        for of in 0..heads {
            let from = (row * heads + of) * head;
            let tile = tile * LANES * wide..(tile + 1) * LANES * wide;
            let (to_keys, to_values) = (&mut memory.keys[of][tile.clone()], &mut memory.values[of][tile]);
            for number in 0..head {
                to_keys[number * LANES + lane] = half(keys[from + number]);
                let chunk = number / LANES * LANES * LANES;
                to_values[chunk + lane * LANES + number % LANES] = half(values[from + number]);
            }
        }
    }
}

impl Attention<'_> {
    /// What `count` queries find: for each, the heads one after the other.
    pub fn of(&self, queries: &[f32], count: usize) -> Vec<f32> {
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
            let ends: [usize; ROWS] =
                std::array::from_fn(|row| self.position + (first + row.min(rows - 1)) / group + 1);
            widest(
                #[inline(always)]
                || match rows {
                    1 => self.block::<1, 4>(kv_head, &asked, &ends, out),
                    2 => self.block::<2, 2>(kv_head, &asked, &ends, out),
                    3 | 4 => self.block::<4, 1>(kv_head, &asked, &ends, out),
                    _ => self.block::<ROWS, 1>(kv_head, &asked, &ends, out),
                },
            );
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

    /// `N` queries over all positions before their `ends`, in `P` partial sums for each: one addition need not wait
    /// for the one before it, which is what takes the time where queries are few.
    #[inline(always)]
    fn block<const N: usize, const P: usize>(
        &self,
        kv_head: usize,
        asked: &[f32],
        ends: &[usize; ROWS],
        out: &mut [f32],
    ) {
        let wide = padded(self.head);
        let start = |row: usize| ends[row].saturating_sub(self.window);
        let (from, to) = (start(0) / LANES, ends[N - 1].div_ceil(LANES));
        let length = (to - from) * LANES;
        let mut scores = vec![0.0; N * length];
        for (tile, keys) in
            self.memory.keys[kv_head].chunks_exact(LANES * wide).take(to).skip(from).enumerate()
        {
            let found = products::<N, P>(keys, asked, wide);
            for row in 0..N {
                scores[row * length + tile * LANES..][..LANES].copy_from_slice(&found[row]);
            }
        }
        let mut sums = [0.0; N];
        for row in 0..N {
            let seen = start(row) - from * LANES..ends[row] - from * LANES;
            sums[row] = weigh(&mut scores[row * length..][..length], seen);
        }
        let values = &self.memory.values[kv_head][from * LANES * wide..to * LANES * wide];
        for chunk in 0..wide / LANES {
            let mut parts = [[[0.0; LANES]; P]; N];
            for (tile, values) in values.chunks_exact(LANES * wide).enumerate() {
                let values = &values[chunk * LANES * LANES..][..LANES * LANES];
                let weights: [&[f32]; N] =
                    std::array::from_fn(|row| &scores[row * length + tile * LANES..][..LANES]);
                for (lane, value) in values.as_chunks().0.iter().enumerate() {
                    let value = halves(value);
                    for row in 0..N {
                        accumulate(&mut parts[row][lane % P], weights[row][lane], &value);
                    }
                }
            }
            for row in 0..N {
                let (scale, found) = (sums[row].recip(), total(&parts[row]));
                for (to, from) in out[row * wide + chunk * LANES..][..LANES].iter_mut().zip(found) {
                    *to = from * scale;
                }
            }
        }
    }
}

/// Each of `N` queries times each of the sixteen keys of a tile.
#[inline(always)]
fn products<const N: usize, const P: usize>(keys: &[u16], asked: &[f32], wide: usize) -> [Lanes; N] {
    let asked: [&[f32]; N] = std::array::from_fn(|row| &asked[row * wide..][..wide]);
    let mut parts = [[[0.0; LANES]; P]; N];
    for (number, keys) in keys.as_chunks::<LANES>().0.as_chunks::<P>().0.iter().enumerate() {
        for part in 0..P {
            let key = halves(&keys[part]);
            for row in 0..N {
                accumulate(&mut parts[row][part], asked[row][number * P + part], &key);
            }
        }
    }
    std::array::from_fn(|row| total(&parts[row]))
}

#[inline(always)]
fn total<const P: usize>(parts: &[Lanes; P]) -> Lanes {
    std::array::from_fn(|lane| parts.iter().map(|part| part[lane]).sum())
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
