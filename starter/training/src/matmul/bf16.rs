//! The product of 16-bit floats: `vdpbf16ps` multiplies sixteen pairs of them and adds each pair to a 32-bit sum.
//!
//! Both sides are laid out as pairs (two numbers that follow one another along k, in one `u32`). The left one is
//! read pair by pair and the right one in panels of 32 columns, so neither needs more reordering than that.

use std::arch::x86_64::{
    __m512bh, _mm512_add_ps, _mm512_dpbf16_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_set1_epi32,
    _mm512_setzero_ps, _mm512_storeu_ps,
};
use std::mem::transmute;

use super::View;
use crate::wide::wide;

/// The columns of the right side that are worked on together, two vectors of sums.
pub const PANEL: usize = 32;
/// The rows of the left side that are worked on together: with `PANEL` 16 sums, more than the multiplier's 6 cycles.
const ROWS: usize = 8;

/// `k` is even, `n` a multiple of [`PANEL`], `a` and `out` cover their matrices, `right` was made by [`pack`], and the
/// processor has AVX-512 BF16.
#[allow(clippy::too_many_arguments)]
#[allow(unsafe_code)]
pub fn product(
    left: &mut Vec<u32>,
    out: &mut [f32],
    step: usize,
    (m, k, n): (usize, usize, usize),
    a: View,
    right: &[u32],
    add: bool,
) {
    let pairs = k / 2;
    assert!(right.len() >= pairs * n);
    // (from row to row, from pair to pair)
    let (row, pair) = if a.column == 1 {
        along_rows(a.data, a.row, m, pairs, fit(left, m * pairs));
        (pairs, 1)
    } else {
        along_columns(a.data, a.column, m, pairs, fit(left, m * pairs));
        (1, m)
    };
    for column in (0..n).step_by(PANEL) {
        let mut at = 0;
        while at < m {
            // SAFETY: `product` in matmul.rs asked for the processor's features and checked that each matrix lies in
            // its slice; `left` was filled for m and `pairs` just above, and `right` was measured.
            unsafe {
                let (a, b) = (left.as_ptr().add(at * row), right.as_ptr().add(column));
                let out = out.as_mut_ptr().add(at * step + column);
                if at + ROWS <= m {
                    block::<ROWS>(pairs, a, row, pair, b, n, out, step, add);
                    at += ROWS;
                } else {
                    block::<1>(pairs, a, row, pair, b, n, out, step, add);
                    at += 1;
                }
            }
        }
    }
}

/// Brings a right side in order.
pub fn pack(words: &mut Vec<u32>, (k, n): (usize, usize), b: View) {
    let words = fit(words, k / 2 * n);
    if b.column == 1 {
        along_columns(b.data, b.row, n, k / 2, words);
    } else {
        turned(b.data, b.column, n, k / 2, words);
    }
}

/// `R` rows and [`PANEL`] columns of the result.
///
/// # Safety
/// The pointers reach `R` rows, `pairs` pairs and `PANEL` columns.
#[allow(clippy::too_many_arguments)]
#[allow(unsafe_code)]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn block<const R: usize>(
    pairs: usize,
    a: *const u32,
    row: usize,
    pair: usize,
    b: *const u32,
    n: usize,
    out: *mut f32,
    step: usize,
    add: bool,
) {
    // SAFETY: the caller's promise; `__m512bh` and `__m512i` are the same 64 bytes.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); 2]; R];
        for p in 0..pairs {
            let b = b.add(p * n);
            let first: __m512bh = transmute(_mm512_loadu_si512(b.cast()));
            let second: __m512bh = transmute(_mm512_loadu_si512(b.add(16).cast()));
            for (r, sums) in sums.iter_mut().enumerate() {
                let a: __m512bh = transmute(_mm512_set1_epi32((*a.add(r * row + p * pair)).cast_signed()));
                sums[0] = _mm512_dpbf16_ps(sums[0], a, first);
                sums[1] = _mm512_dpbf16_ps(sums[1], a, second);
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (half, &sum) in sums.iter().enumerate() {
                let out = out.add(r * step + 16 * half);
                let sum = if add { _mm512_add_ps(sum, _mm512_loadu_ps(out)) } else { sum };
                _mm512_storeu_ps(out, sum);
            }
        }
    }
}

/// Two numbers rounded to 16 bits, to even, in one word.
#[inline(always)]
fn pair(low: f32, high: f32) -> u32 {
    round(low) | round(high) << 16
}

#[inline(always)]
fn round(number: f32) -> u32 {
    let bits = number.to_bits();
    bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16
}

/// The first `size` words of space that only grows.
fn fit(space: &mut Vec<u32>, size: usize) -> &mut [u32] {
    if space.len() < size {
        space.resize(size, 0);
    }
    &mut space[..size]
}

wide! {
    /// Pairs lie side by side in `data`, and come out row after row.
    fn along_rows(data: &[f32], row: usize, rows: usize, pairs: usize, out: &mut [u32]) {
        for (r, out) in out.chunks_exact_mut(pairs).take(rows).enumerate() {
            let numbers = &data[r * row..][..2 * pairs];
            for (out, two) in out.iter_mut().zip(numbers.chunks_exact(2)) {
                *out = pair(two[0], two[1]);
            }
        }
    }

    /// Pairs lie below one another in `data`, `step` apart, and come out pair after pair.
    fn along_columns(data: &[f32], step: usize, width: usize, pairs: usize, out: &mut [u32]) {
        for (p, out) in out.chunks_exact_mut(width).take(pairs).enumerate() {
            let (low, high) = (&data[2 * p * step..][..width], &data[(2 * p + 1) * step..][..width]);
            for ((out, &low), &high) in out.iter_mut().zip(low).zip(high) {
                *out = pair(low, high);
            }
        }
    }

    /// Pairs lie side by side in `data`, and come out pair after pair.
    fn turned(data: &[f32], step: usize, width: usize, pairs: usize, out: &mut [u32]) {
        // Squares of 16 pairs, which stay in the cache while they are written across.
        for from in (0..pairs).step_by(16) {
            let to = pairs.min(from + 16);
            for c in 0..width {
                let numbers = &data[c * step..][2 * from..2 * to];
                for (p, two) in numbers.chunks_exact(2).enumerate() {
                    out[(from + p) * width + c] = pair(two[0], two[1]);
                }
            }
        }
    }
}
