//! [`ByteRegisters`] of AVX2, which are also the best ones of AVX-512 where the sums are so short.

use std::arch::x86_64::{__m128i, __m256, __m256i, _MM_HINT_T0};

use pulp::cast;

use super::{Avx2, Avx512};
use crate::inference::kernels::quantised::registers::{ByteRegisters, EIGHT, bytes::AHEAD};

/// Bytes that the CPU fetches at once.
const CACHE_LINE: usize = 64;

/// The bit of each byte of a group of eight.
const BITS: [u8; 32] = {
    let mut bits = [0; 32];
    let mut at = 0;
    while at < 32 {
        bits[at] = 1 << (at % 8);
        at += 1;
    }
    bits
};

/// For each byte of a register, the one of four bytes that has its bit.
const BYTE_OF_BIT: [u8; 32] = {
    let mut bytes = [0; 32];
    let mut at = 0;
    while at < 32 {
        bytes[at] = (at / 8) as u8;
        at += 1;
    }
    bytes
};

/// The even places of sixteen, and then the odd ones.
const EVEN_FIRST: [u8; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15];

macro_rules! byte_registers {
    ($registers: ty, $sixteens: item) => {
        impl ByteRegisters for $registers {
            type Bytes = __m256i;
            type Eight = __m256;
            type Sums = __m256i;
            type Whole = __m256i;

            #[inline(always)]
            fn fetch_ahead(self, bytes: &[u8]) {
                for line in 0..bytes.len().div_ceil(CACHE_LINE) {
                    let ahead = bytes.as_ptr().wrapping_add(AHEAD + line * CACHE_LINE);
                    self.sse._mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                }
            }

            #[inline(always)]
            fn load_bytes(self, bytes: &[u8; 32]) -> __m256i {
                cast(*bytes)
            }

            #[inline(always)]
            fn load_halves(self, halves: [&[u8; 16]; 2]) -> __m256i {
                cast([*halves[0], *halves[1]])
            }

            #[inline(always)]
            fn nibbles(self, bytes: &[u8; 16]) -> __m256i {
                let packed: __m128i = cast(*bytes);
                let both: __m256i = cast([packed, self.sse2._mm_srli_epi16::<4>(packed)]);
                self.avx2._mm256_and_si256(both, self.avx._mm256_set1_epi8(15))
            }

            $sixteens

            #[inline(always)]
            fn right(self, bytes: __m256i, by: usize, mask: u8) -> __m256i {
                let by = self.sse2._mm_cvtsi32_si128(by as i32);
                let shifted = self.avx2._mm256_srl_epi16(bytes, by);
                self.avx2._mm256_and_si256(shifted, self.avx._mm256_set1_epi8(mask.cast_signed()))
            }

            #[inline(always)]
            fn left(self, bytes: __m256i, by: usize, mask: u8) -> __m256i {
                let by = self.sse2._mm_cvtsi32_si128(by as i32);
                let shifted = self.avx2._mm256_sll_epi16(bytes, by);
                self.avx2._mm256_and_si256(shifted, self.avx._mm256_set1_epi8(mask.cast_signed()))
            }

            #[inline(always)]
            fn either(self, left: __m256i, right: __m256i) -> __m256i {
                self.avx2._mm256_or_si256(left, right)
            }

            #[inline(always)]
            fn look_up(self, table: &[i8; 16], numbers: __m256i) -> __m256i {
                let table = self.avx2._mm256_broadcastsi128_si256(cast(*table));
                self.avx2._mm256_shuffle_epi8(table, numbers)
            }

            #[inline(always)]
            fn products(self, weights: __m256i, numbers: &[i8; 32]) -> __m256 {
                let pairs = self.avx2._mm256_maddubs_epi16(weights, cast(*numbers));
                let sums = self.avx2._mm256_madd_epi16(pairs, self.avx._mm256_set1_epi16(1));
                self.avx._mm256_cvtepi32_ps(sums)
            }

            #[inline(always)]
            fn signed_products(self, weights: __m256i, numbers: &[i8; 32]) -> __m256 {
                // One factor of each product must be without a sign: the other has both.
                let signed: [i8; 32] = cast(self.avx2._mm256_sign_epi8(cast(*numbers), weights));
                self.products(self.avx2._mm256_abs_epi8(weights), &signed)
            }

            #[inline(always)]
            fn paired_products(self, weights: [__m256i; 2], numbers: [&[i8; 32]; 2]) -> __m256 {
                // Four products of 63 and 127 fit into 16 bits.
                let pairs = self.avx2._mm256_add_epi16(
                    self.avx2._mm256_maddubs_epi16(weights[0], cast(*numbers[0])),
                    self.avx2._mm256_maddubs_epi16(weights[1], cast(*numbers[1])),
                );
                let sums = self.avx2._mm256_madd_epi16(pairs, self.avx._mm256_set1_epi16(1));
                self.avx._mm256_cvtepi32_ps(sums)
            }

            #[inline(always)]
            fn signed_paired_products(
                self,
                weights: [__m256i; 2],
                numbers: [&[i8; 32]; 2],
                sizes: [&[u8; 32]; 2],
            ) -> __m256 {
                let one = self.avx._mm256_set1_epi16(1);
                let first = self.avx2._mm256_sign_epi8(weights[0], cast(*numbers[0]));
                let second = self.avx2._mm256_sign_epi8(weights[1], cast(*numbers[1]));
                let first = self.avx2._mm256_maddubs_epi16(cast(*sizes[0]), first);
                let second = self.avx2._mm256_maddubs_epi16(cast(*sizes[1]), second);
                let first = self.avx2._mm256_madd_epi16(first, one);
                let second = self.avx2._mm256_madd_epi16(second, one);
                self.avx._mm256_cvtepi32_ps(self.avx2._mm256_add_epi32(first, second))
            }

            #[inline(always)]
            fn eight(self, numbers: &[f32; EIGHT]) -> __m256 {
                cast(*numbers)
            }

            #[inline(always)]
            fn plus(self, left: __m256, right: __m256) -> __m256 {
                self.avx._mm256_add_ps(left, right)
            }

            #[inline(always)]
            fn times(self, left: __m256, right: __m256) -> __m256 {
                self.avx._mm256_mul_ps(left, right)
            }

            #[inline(always)]
            fn plus_times(self, sum: __m256, left: __m256, right: __m256) -> __m256 {
                self.fma._mm256_fmadd_ps(left, right, sum)
            }

            #[inline(always)]
            fn one_of(self, numbers: __m256, at: usize) -> __m256 {
                self.avx2._mm256_permutevar8x32_ps(numbers, self.avx._mm256_set1_epi32(at as i32))
            }

            #[inline(always)]
            fn two_of(self, numbers: __m256, at: usize) -> __m256 {
                let (first, second) = (at as i32, at as i32 + 1);
                let places = [first, first, first, first, second, second, second, second];
                self.avx2._mm256_permutevar8x32_ps(numbers, cast(places))
            }

            #[inline(always)]
            fn total(self, numbers: __m256) -> f32 {
                let [a, b, c, d, e, f, g, h]: [f32; EIGHT] = cast(numbers);
                ((a + e) + (c + g)) + ((b + f) + (d + h))
            }

            #[inline(always)]
            fn no_sums(self) -> __m256i {
                self.avx._mm256_setzero_si256()
            }

            #[inline(always)]
            fn plus_sums(self, left: __m256i, right: __m256i) -> __m256i {
                self.avx2._mm256_add_epi32(left, right)
            }

            #[inline(always)]
            fn to_eight(self, sums: __m256i) -> __m256 {
                self.avx._mm256_cvtepi32_ps(sums)
            }

            #[inline(always)]
            fn whole(self, numbers: &[i8; 16]) -> __m256i {
                let ordered = self.ssse3._mm_shuffle_epi8(cast(*numbers), cast(EVEN_FIRST));
                self.avx2._mm256_cvtepi8_epi16(ordered)
            }

            #[inline(always)]
            fn whole_in_order(self, numbers: &[i8; 16]) -> __m256i {
                self.avx2._mm256_cvtepi8_epi16(cast(*numbers))
            }

            #[inline(always)]
            fn first_half_twice(self, whole: __m256i) -> __m256i {
                self.avx2._mm256_permute4x64_epi64::<0b01_00_01_00>(whole)
            }

            #[inline(always)]
            fn times_whole(self, left: __m256i, right: &[i16; 16]) -> __m256i {
                self.avx2._mm256_mullo_epi16(left, cast(*right))
            }

            #[inline(always)]
            fn plus_products(
                self,
                sums: __m256i,
                weights: __m256i,
                numbers: &[i8; 32],
                factors: __m256i,
                at: usize,
            ) -> __m256i {
                let factors = self.avx2._mm256_shuffle_epi8(factors, cast(self.places[at]));
                let pairs = self.avx2._mm256_maddubs_epi16(weights, cast(*numbers));
                self.avx2._mm256_add_epi32(sums, self.avx2._mm256_madd_epi16(pairs, factors))
            }

            #[inline(always)]
            fn whole_products(self, left: __m256i, right: &[i16; 16]) -> __m256i {
                self.avx2._mm256_madd_epi16(left, cast(*right))
            }
        }
    };
}

byte_registers!(
    Avx2,
    #[inline(always)]
    fn sixteens(self, bits: [u8; 4]) -> __m256i {
        let all = self.avx._mm256_set1_epi32(i32::from_le_bytes(bits));
        let bytes = self.avx2._mm256_shuffle_epi8(all, cast(BYTE_OF_BIT));
        let bits = self.avx2._mm256_and_si256(bytes, cast(BITS));
        let set = self.avx2._mm256_cmpeq_epi8(bits, cast(BITS));
        self.avx2._mm256_and_si256(set, self.avx._mm256_set1_epi8(16))
    }
);

byte_registers!(
    Avx512,
    #[inline(always)]
    fn sixteens(self, bits: [u8; 4]) -> __m256i {
        self.avx512bw._mm256_maskz_set1_epi8(u32::from_le_bytes(bits), 16)
    }
);
