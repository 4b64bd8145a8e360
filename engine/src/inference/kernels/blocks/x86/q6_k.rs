//! `Q6_K`: blocks of 256 numbers of six bits.
//!
//! A block has the low four bits of the numbers, the high two, a scale of eight bits for each sixteen, and a factor in
//! half precision. Of each half of a block, 64 bytes are the low bits of 128 numbers, first those in the low halves of
//! the bytes, and 32 bytes the high ones, two bits of each byte after the other. A number stands for
//! `factor * scale * (number - 32)`.

use std::arch::x86_64::{__m128i, __m256i};

use pulp::{cast, x86::V3};

use super::{ActivationBlock, scale, sum};

pub(super) const BYTES: usize = 210;

/// The bytes of sixteen scales that make eight copies of one of them and eight of the next.
const TWO_OF: [[u8; 16]; 8] = {
    let mut all = [[0; 16]; 8];
    let mut at = 0u8;
    while at < 8 {
        let mut byte = 0;
        while byte < 16 {
            all[at as usize][byte] = 2 * at + (byte / 8) as u8;
            byte += 1;
        }
        at += 1;
    }
    all
};

/// Multiplies a row by a vector.
#[inline(always)]
pub(super) fn product(simd: V3, row: &[u8], vector: &[ActivationBlock]) -> f32 {
    let V3 { ssse3, sse2, avx, avx2, fma, .. } = simd;
    let (four, two) = (avx._mm256_set1_epi8(0x0f), avx._mm256_set1_epi8(0x30));
    let (mut products, mut offsets) = (avx._mm256_setzero_ps(), avx._mm256_setzero_ps());
    for (block, activations) in row.as_chunks::<BYTES>().0.iter().zip(vector) {
        let (low, rest) = block.as_chunks::<32>().0.split_at(4);
        let tail: [u8; 18] = std::array::from_fn(|at| block[192 + at]);
        let [scales @ .., first, second] = tail;
        let (scales, factor): (__m128i, f32) = (cast(scales), scale([first, second]));
        for (at, scales) in [scales, sse2._mm_bsrli_si128::<8>(scales)].into_iter().enumerate() {
            let scales = avx._mm256_cvtepi32_ps(avx2._mm256_cvtepi8_epi32(scales));
            let sums = avx._mm256_mul_ps(scales, cast(activations.half_sums.as_chunks::<8>().0[at]));
            offsets = fma._mm256_fmadd_ps(sums, avx._mm256_set1_ps(32.0 * factor), offsets);
        }
        let mut sums = avx._mm256_setzero_si256();
        for half in 0..2 {
            let [left, right]: [__m256i; 2] = [cast(low[2 * half]), cast(low[2 * half + 1])];
            let high: __m256i = cast(rest[half]);
            let shifted = [left, right].map(|bits| avx2._mm256_srli_epi16::<4>(bits));
            let highs = [
                avx2._mm256_slli_epi16::<4>(high),
                avx2._mm256_slli_epi16::<2>(high),
                high,
                avx2._mm256_srli_epi16::<2>(high),
            ];
            let lows = [left, right, shifted[0], shifted[1]];
            for part in 0..4 {
                let at = 4 * half + part;
                let weights = avx2._mm256_or_si256(
                    avx2._mm256_and_si256(lows[part], four),
                    avx2._mm256_and_si256(highs[part], two),
                );
                let products =
                    avx2._mm256_maddubs_epi16(weights, cast(activations.numbers.as_chunks::<32>().0[at]));
                let scales = avx2._mm256_cvtepi8_epi16(ssse3._mm_shuffle_epi8(scales, cast(TWO_OF[at])));
                sums = avx2._mm256_add_epi32(sums, avx2._mm256_madd_epi16(products, scales));
            }
        }
        let factor = avx._mm256_set1_ps(factor * activations.scale);
        products = fma._mm256_fmadd_ps(avx._mm256_cvtepi32_ps(sums), factor, products);
    }
    sum(products) - sum(offsets)
}
