//! `Q8_0`: blocks of a scale in half precision and 32 numbers of eight bits.

use std::arch::x86_64::__m256i;

use pulp::{cast, x86::V3};

use super::{ActivationBlock, scale, sum};

const BLOCK: usize = 34;
/// Bytes of the blocks of 256 numbers.
pub(super) const BYTES: usize = 8 * BLOCK;

/// Multiplies a row by a vector.
#[inline(always)]
pub(super) fn product(simd: V3, row: &[u8], vector: &[ActivationBlock]) -> f32 {
    let V3 { avx, avx2, fma, .. } = simd;
    let ones = avx._mm256_set1_epi16(1);
    // Two, so that one addition need not wait for the one before it.
    let mut products = [avx._mm256_setzero_ps(); 2];
    for (blocks, activations) in row.as_chunks::<BYTES>().0.iter().zip(vector) {
        let numbers = activations.numbers.as_chunks::<32>().0;
        for (at, (block, numbers)) in blocks.as_chunks::<BLOCK>().0.iter().zip(numbers).enumerate() {
            let [low, high, weights @ ..] = *block;
            let (weights, numbers): (__m256i, __m256i) = (cast(weights), cast(*numbers));
            // One factor of each product must be without a sign: the other has both.
            let signed = avx2._mm256_sign_epi8(numbers, weights);
            let sums = avx2._mm256_maddubs_epi16(avx2._mm256_abs_epi8(weights), signed);
            let sums = avx._mm256_cvtepi32_ps(avx2._mm256_madd_epi16(sums, ones));
            let factor = avx._mm256_set1_ps(scale([low, high]) * activations.scale);
            products[at % 2] = fma._mm256_fmadd_ps(sums, factor, products[at % 2]);
        }
    }
    sum(avx._mm256_add_ps(products[0], products[1]))
}
