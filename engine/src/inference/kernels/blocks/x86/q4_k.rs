//! `Q4_K`: blocks of 256 numbers of four bits.
//!
//! A block has two factors, in half precision; eight scales and eight offsets of six bits, one of each for 32 numbers,
//! packed into twelve bytes; and the numbers, where the low and the high half of 32 bytes are 32 numbers each. A number
//! stands for `first factor * scale * number - second factor * offset`.

use std::arch::x86_64::{__m128i, __m256i};

use pulp::{cast, x86::V3};

use super::{ActivationBlock, scale, sum};

pub(super) const BYTES: usize = 144;

/// The bytes of eight scales, two bytes each, that make sixteen copies of one of them.
const ONE_OF: [[u8; 32]; 8] = {
    let mut all = [[0; 32]; 8];
    let mut at = 0u8;
    while at < 8 {
        let mut byte = 0;
        while byte < 32 {
            all[at as usize][byte] = 2 * at + (byte % 2) as u8;
            byte += 1;
        }
        at += 1;
    }
    all
};

/// Multiplies a row by a vector.
#[inline(always)]
pub(super) fn product(simd: V3, row: &[u8], vector: &[ActivationBlock]) -> f32 {
    let V3 { avx, avx2, fma, .. } = simd;
    let low_half = avx._mm256_set1_epi8(15);
    let (mut products, mut offsets) = (avx._mm256_setzero_ps(), avx._mm256_setzero_ps());
    for (block, activations) in row.as_chunks::<BYTES>().0.iter().zip(vector) {
        let (head, numbers) = block.split_at(16);
        let words = head.as_chunks::<4>().0;
        let [first, second] = [[words[0][0], words[0][1]], [words[0][2], words[0][3]]].map(scale);
        let [a, b, c] = [words[1], words[2], words[3]].map(u32::from_le_bytes);
        let unpacked: __m128i = cast([
            a & 0x3f3f_3f3f,
            c & 0x0f0f_0f0f | (a >> 6 & 0x0303_0303) << 4,
            b & 0x3f3f_3f3f,
            c >> 4 & 0x0f0f_0f0f | (b >> 6 & 0x0303_0303) << 4,
        ]);
        let [scales, shifts]: [__m128i; 2] = cast(avx2._mm256_cvtepu8_epi16(unpacked));
        let scales = avx2._mm256_broadcastsi128_si256(scales);
        let shifts = avx._mm256_cvtepi32_ps(avx2._mm256_cvtepu16_epi32(shifts));
        let shifted = avx._mm256_mul_ps(shifts, cast(activations.sums));
        offsets = fma._mm256_fmadd_ps(shifted, avx._mm256_set1_ps(second), offsets);
        let mut sums = avx._mm256_setzero_si256();
        let pairs = activations.numbers.as_chunks::<64>().0;
        for (at, (halves, numbers)) in numbers.as_chunks::<32>().0.iter().zip(pairs).enumerate() {
            let halves: __m256i = cast(*halves);
            let high = avx2._mm256_and_si256(avx2._mm256_srli_epi16::<4>(halves), low_half);
            let both = [avx2._mm256_and_si256(halves, low_half), high];
            for (half, numbers) in numbers.as_chunks::<32>().0.iter().enumerate() {
                let scale = avx2._mm256_shuffle_epi8(scales, cast(ONE_OF[2 * at + half]));
                let products = avx2._mm256_maddubs_epi16(both[half], cast(*numbers));
                sums = avx2._mm256_add_epi32(sums, avx2._mm256_madd_epi16(products, scale));
            }
        }
        let factor = avx._mm256_set1_ps(first * activations.scale);
        products = fma._mm256_fmadd_ps(avx._mm256_cvtepi32_ps(sums), factor, products);
    }
    sum(products) - sum(offsets)
}
