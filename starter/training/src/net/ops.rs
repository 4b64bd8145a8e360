//! The operations between the products, on a row of numbers per token.
//!
//! The loops are written in lanes of [`LANES`], so that the compiler may use whole vectors for sums as well.

use super::shape::{EPSILON, HEAD, LOGITS, ROPE_BASE, VOCABULARY};
use crate::wide::wide;

const LANES: usize = 16;

/// Sum of `f(x, y)` over both slices, whose length is a multiple of [`LANES`].
#[inline(always)]
fn sum(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    for (x, y) in x.chunks_exact(LANES).zip(y.chunks_exact(LANES)) {
        for lane in 0..LANES {
            sums[lane] += f(x[lane], y[lane]);
        }
    }
    sums.iter().sum()
}

#[inline(always)]
fn maximum(x: &[f32]) -> f32 {
    let mut all = [f32::NEG_INFINITY; LANES];
    for x in x.chunks_exact(LANES) {
        for lane in 0..LANES {
            all[lane] = if x[lane] > all[lane] { x[lane] } else { all[lane] };
        }
    }
    all.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b))
}

/// e to the x, off by 2 in the 7th digit, for vectors: 2^n · e^r with |r| ≤ ln 2 / 2 and e^r by its series.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5 · 2^23: adding it rounds to a whole number
    // `clamp` keeps what is no number, and that costs the vectors.
    #[allow(clippy::manual_clamp)]
    let x = x.max(-87.0).min(88.0);
    let n = x.mul_add(std::f32::consts::LOG2_E, MAGIC);
    let power = n.to_bits().wrapping_sub(MAGIC.to_bits()).wrapping_add(127) << 23;
    let n = n - MAGIC;
    let r = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, x));
    let mut p: f32 = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p.mul_add(r, c);
    }
    p * f32::from_bits(power)
}

wide! {
    /// `out = x / rms(x) · gain`; `scales` keeps 1 / rms for the way back.
    pub fn norm(out: &mut [f32], scales: &mut [f32], x: &[f32], gain: &[f32]) {
        let width = gain.len();
        for ((out, x), scale) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(scales) {
            *scale = 1.0 / (sum(x, x, |x, y| x * y) / width as f32 + EPSILON).sqrt();
            for ((out, x), gain) in out.iter_mut().zip(x).zip(gain) {
                *out = x * *scale * gain;
            }
        }
    }
}

wide! {
    /// Adds to `dx` and `dgain` what `dout` asks of them.
    pub fn norm_back(dx: &mut [f32], dgain: &mut [f32], dout: &[f32], scales: &[f32], x: &[f32], gain: &[f32]) {
        let width = gain.len();
        let rows = dx.chunks_exact_mut(width).zip(dout.chunks_exact(width)).zip(x.chunks_exact(width));
        for (((dx, dout), x), &scale) in rows.zip(scales) {
            let mut sums = [0.0; LANES];
            for at in (0..width).step_by(LANES) {
                for lane in 0..LANES {
                    sums[lane] += dout[at + lane] * gain[at + lane] * x[at + lane];
                }
            }
            let mean = sums.iter().sum::<f32>() * scale * scale / width as f32;
            for i in 0..width {
                dgain[i] += dout[i] * x[i] * scale;
                dx[i] += scale * (dout[i] * gain[i] - x[i] * mean);
            }
        }
    }
}

wide! {
    /// `out = silu(gate) · up`, where `gate_up` has both side by side.
    pub fn swiglu(out: &mut [f32], gate_up: &[f32], ffn: usize) {
        for (out, both) in out.chunks_exact_mut(ffn).zip(gate_up.chunks_exact(2 * ffn)) {
            let (gate, up) = both.split_at(ffn);
            for ((out, &gate), &up) in out.iter_mut().zip(gate).zip(up) {
                *out = gate / (1.0 + exp(-gate)) * up;
            }
        }
    }
}

wide! {
    /// Puts what `dout` asks of gate and up into `gate_up`, in place of them.
    pub fn swiglu_back(gate_up: &mut [f32], dout: &[f32], ffn: usize) {
        for (dout, both) in dout.chunks_exact(ffn).zip(gate_up.chunks_exact_mut(2 * ffn)) {
            let (gate, up) = both.split_at_mut(ffn);
            let lanes = gate.chunks_exact_mut(LANES).zip(up.chunks_exact_mut(LANES));
            for ((gate, up), dout) in lanes.zip(dout.chunks_exact(LANES)) {
                for lane in 0..LANES {
                    let share = 1.0 / (1.0 + exp(-gate[lane]));
                    let silu = gate[lane] * share;
                    gate[lane] = dout[lane] * up[lane] * (share + silu * (1.0 - share));
                    up[lane] = dout[lane] * silu;
                }
            }
        }
    }
}

/// Sines and cosines for a head: at place p and pair i, `[p * HEAD / 2 + i]`.
pub struct Rope {
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Rope {
    pub fn new(places: usize) -> Self {
        let angle = |at: usize| {
            let (place, pair) = (at / (HEAD / 2), at % (HEAD / 2));
            place as f32 * ROPE_BASE.powf(-2.0 * pair as f32 / HEAD as f32)
        };
        let all = 0..places * HEAD / 2;
        Self {
            cosines: all.clone().map(|at| angle(at).cos()).collect(),
            sines: all.map(|at| angle(at).sin()).collect(),
        }
    }

    pub fn places(&self) -> usize {
        self.cosines.len() / (HEAD / 2)
    }

    /// Turns neighbouring numbers of each head by their place's angles; backwards if `sign` is -1. `x` has a row of
    /// `step` numbers per place, beginning with `place`, of which the first `width` are turned.
    pub fn turn(&self, x: &mut [f32], step: usize, width: usize, place: usize, sign: f32) {
        turn(x, step, width, &self.cosines[place * HEAD / 2..], &self.sines[place * HEAD / 2..], sign);
    }
}

wide! {
    fn turn(x: &mut [f32], step: usize, width: usize, cosines: &[f32], sines: &[f32], sign: f32) {
        let half = HEAD / 2;
        for ((row, cosines), sines) in x.chunks_exact_mut(step).zip(cosines.chunks_exact(half)).zip(sines.chunks_exact(half)) {
            for head in row[..width].chunks_exact_mut(HEAD) {
                let mut old = [0.0; HEAD];
                old.copy_from_slice(head);
                for at in 0..HEAD {
                    let other = if at % 2 == 0 { -old[at + 1] } else { old[at - 1] };
                    head[at] = old[at] * cosines[at / 2] + other * (sines[at / 2] * sign);
                }
            }
        }
    }
}

wide! {
    /// Weighted cross entropy of each row of `logits`, summed; the logits become what they should change by.
    ///
    /// A second sum is that of the rows with weight 1.
    pub fn cross_entropy(logits: &mut [f32], targets: &[u16], weights: &[f32]) -> (f64, f64) {
        let (mut total, mut full) = (0.0, 0.0);
        for ((row, &target), &weight) in logits.chunks_exact_mut(LOGITS).zip(targets).zip(weights) {
            row[VOCABULARY..].fill(-1e4);
            let top = maximum(row);
            for number in row.iter_mut() {
                *number = exp(*number - top);
            }
            let sum = sum(row, row, |x, _| x);
            let loss = weight * (sum / row[usize::from(target)].max(1e-30)).ln();
            total += f64::from(loss);
            full += if weight == 1.0 { f64::from(loss) } else { 0.0 };
            let factor = weight / sum;
            for number in row.iter_mut() {
                *number *= factor;
            }
            row[usize::from(target)] -= weight;
            row[VOCABULARY..].fill(0.0);
        }
        (total, full)
    }
}

wide! {
    /// `x += y`.
    pub fn add(x: &mut [f32], y: &[f32]) {
        for (x, y) in x.iter_mut().zip(y) {
            *x += y;
        }
    }
}

wide! {
    /// Scores become shares: of each row of `seen`, the first `first` (and one more with each row) become
    /// e^(x · scale) / sum and the rest 0. `sums` becomes the logarithms of these sums.
    pub fn soften(scores: &mut [f32], sums: &mut [f32], seen: usize, first: usize, scale: f32) {
        for (at, (row, ln)) in scores.chunks_exact_mut(seen).zip(sums).enumerate() {
            row[first + at..].fill(f32::NEG_INFINITY);
            let top = maximum(row) * scale;
            let mut sums = [0.0; LANES];
            for x in row.chunks_exact_mut(LANES) {
                for lane in 0..LANES {
                    x[lane] = exp(x[lane] * scale - top);
                    sums[lane] += x[lane];
                }
            }
            let sum: f32 = sums.iter().sum();
            let share = 1.0 / sum;
            for x in row.iter_mut() {
                *x *= share;
            }
            row[first + at..].fill(0.0);
            *ln = top + sum.ln();
        }
    }

    /// Scores become shares as in [`soften`], whose `sums` these are; and `asked`, of the shares, becomes what is
    /// asked of the scores. `means` are the rows' sums of share times asked.
    pub fn soften_back(scores: &mut [f32], asked: &mut [f32], sums: &[f32], means: &[f32], seen: usize, first: usize, scale: f32) {
        let rows = scores.chunks_exact_mut(seen).zip(asked.chunks_exact_mut(seen));
        for (at, ((scores, asked), (&sum, &mean))) in rows.zip(sums.iter().zip(means)).enumerate() {
            for (score, asked) in scores.iter_mut().zip(asked.iter_mut()) {
                *score = exp(*score * scale - sum);
                *asked = *score * (*asked - mean) * scale;
            }
            scores[first + at..].fill(0.0);
            asked[first + at..].fill(0.0);
        }
    }
}
