//! AVX2, and AVX-512 with its instruction for products of pairs.

mod bytes;

use std::arch::x86_64::{__m128i, __m256, __m256i, __m512, __m512i};

use pulp::{NullaryFnOnce, cast, x86::V3};

use super::{Registers, Work};
use crate::inference::kernels::math::{LANES, Lanes};

pulp::simd_type!({
    /// AVX-512 with `VNNI`, in which the compiler makes one instruction of [`Registers::multiply_add`].
    pub(in crate::inference::kernels::quantised) struct Avx512 {
        sse: f!("sse"),
        sse2: f!("sse2"),
        sse3: f!("sse3"),
        ssse3: f!("ssse3"),
        sse4_1: f!("sse4.1"),
        sse4_2: f!("sse4.2"),
        popcnt: f!("popcnt"),
        avx: f!("avx"),
        avx2: f!("avx2"),
        bmi1: f!("bmi1"),
        bmi2: f!("bmi2"),
        fma: f!("fma"),
        lzcnt: f!("lzcnt"),
        avx512f: f!("avx512f"),
        avx512bw: f!("avx512bw"),
        avx512cd: f!("avx512cd"),
        avx512dq: f!("avx512dq"),
        avx512vl: f!("avx512vl"),
        avx512vnni: f!("avx512vnni"),
    }
});

pub(in crate::inference::kernels::quantised) type Avx2 = V3;

/// [`Work`] as pulp takes it.
struct Vectorised<W>(W);

impl<W: Work> NullaryFnOnce for Vectorised<W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.0.run();
    }
}

impl Registers for Avx512 {
    type Ints = __m512i;
    type Floats = __m512;

    fn vectorise<W: Work>(self, work: W) {
        self.vectorize(Vectorised(work));
    }

    #[inline(always)]
    fn zero(self) -> __m512i {
        self.avx512f._mm512_setzero_si512()
    }

    #[inline(always)]
    fn load(self, pairs: &[i16; 32]) -> __m512i {
        cast(*pairs)
    }

    #[inline(always)]
    fn splat(self, pair: [i16; 2]) -> __m512i {
        self.avx512f._mm512_set1_epi32(cast(pair))
    }

    #[inline(always)]
    fn multiply_add(self, sums: __m512i, left: __m512i, right: __m512i) -> __m512i {
        self.avx512f._mm512_add_epi32(sums, self.avx512bw._mm512_madd_epi16(left, right))
    }

    #[inline(always)]
    fn to_floats(self, ints: __m512i) -> __m512 {
        self.avx512f._mm512_cvtepi32_ps(ints)
    }

    #[inline(always)]
    fn load_floats(self, floats: &Lanes) -> __m512 {
        cast(*floats)
    }

    #[inline(always)]
    fn halves(self, halves: &[[u8; 2]; LANES]) -> __m512 {
        self.avx512f._mm512_cvtph_ps(cast(*halves))
    }

    #[inline(always)]
    fn eight_halves(self, halves: &[u16; 8]) -> [f32; 8] {
        cast(self.avx512f._mm256_maskz_cvtph_ps(u8::MAX, cast(*halves)))
    }

    #[inline(always)]
    fn splat_float(self, float: f32) -> __m512 {
        self.avx512f._mm512_set1_ps(float)
    }

    #[inline(always)]
    fn multiply(self, left: __m512, right: __m512) -> __m512 {
        self.avx512f._mm512_mul_ps(left, right)
    }

    #[inline(always)]
    fn multiply_add_floats(self, left: __m512, right: __m512, sum: __m512) -> __m512 {
        self.avx512f._mm512_fmadd_ps(left, right, sum)
    }

    #[inline(always)]
    fn lanes(self, floats: __m512) -> Lanes {
        cast(floats)
    }

    #[inline(always)]
    fn table(self, table: &[i8; 16], numbers: [u8; 16]) -> [i8; 16] {
        cast(self.ssse3._mm_shuffle_epi8(cast(*table), cast(numbers)))
    }
}

impl Registers for Avx2 {
    type Ints = [__m256i; 2];
    type Floats = [__m256; 2];

    fn vectorise<W: Work>(self, work: W) {
        self.vectorize(Vectorised(work));
    }

    #[inline(always)]
    fn zero(self) -> [__m256i; 2] {
        [self.avx._mm256_setzero_si256(); 2]
    }

    #[inline(always)]
    fn load(self, pairs: &[i16; 32]) -> [__m256i; 2] {
        cast(*pairs)
    }

    #[inline(always)]
    fn splat(self, pair: [i16; 2]) -> [__m256i; 2] {
        [self.avx._mm256_set1_epi32(cast(pair)); 2]
    }

    #[inline(always)]
    fn multiply_add(self, sums: [__m256i; 2], left: [__m256i; 2], right: [__m256i; 2]) -> [__m256i; 2] {
        [
            self.avx2._mm256_add_epi32(sums[0], self.avx2._mm256_madd_epi16(left[0], right[0])),
            self.avx2._mm256_add_epi32(sums[1], self.avx2._mm256_madd_epi16(left[1], right[1])),
        ]
    }

    #[inline(always)]
    fn to_floats(self, ints: [__m256i; 2]) -> [__m256; 2] {
        [self.avx._mm256_cvtepi32_ps(ints[0]), self.avx._mm256_cvtepi32_ps(ints[1])]
    }

    #[inline(always)]
    fn load_floats(self, floats: &Lanes) -> [__m256; 2] {
        cast(*floats)
    }

    #[inline(always)]
    fn halves(self, halves: &[[u8; 2]; LANES]) -> [__m256; 2] {
        let [low, high]: [__m128i; 2] = cast(*halves);
        [widened(self, low), widened(self, high)]
    }

    #[inline(always)]
    fn eight_halves(self, halves: &[u16; 8]) -> [f32; 8] {
        cast(widened(self, cast(*halves)))
    }

    #[inline(always)]
    fn splat_float(self, float: f32) -> [__m256; 2] {
        [self.avx._mm256_set1_ps(float); 2]
    }

    #[inline(always)]
    fn multiply(self, left: [__m256; 2], right: [__m256; 2]) -> [__m256; 2] {
        [self.avx._mm256_mul_ps(left[0], right[0]), self.avx._mm256_mul_ps(left[1], right[1])]
    }

    #[inline(always)]
    fn multiply_add_floats(self, left: [__m256; 2], right: [__m256; 2], sum: [__m256; 2]) -> [__m256; 2] {
        [
            self.fma._mm256_fmadd_ps(left[0], right[0], sum[0]),
            self.fma._mm256_fmadd_ps(left[1], right[1], sum[1]),
        ]
    }

    #[inline(always)]
    fn lanes(self, floats: [__m256; 2]) -> Lanes {
        cast(floats)
    }

    #[inline(always)]
    fn table(self, table: &[i8; 16], numbers: [u8; 16]) -> [i8; 16] {
        cast(self.ssse3._mm_shuffle_epi8(cast(*table), cast(numbers)))
    }
}

/// Converts eight numbers of half precision as [`from_half`](crate::inference::kernels::math::from_half) does: pulp has no
/// function for the instruction that CPUs with AVX2 have for it.
#[inline(always)]
fn widened(registers: Avx2, halves: __m128i) -> __m256 {
    let Avx2 { avx, avx2, .. } = registers;
    let bits = avx2._mm256_cvtepu16_epi32(halves);
    let size = avx2._mm256_slli_epi32::<13>(avx2._mm256_and_si256(bits, avx._mm256_set1_epi32(0x7fff)));
    let normal = cast(avx2._mm256_add_epi32(size, avx._mm256_set1_epi32(112 << 23)));
    let smallest = avx._mm256_set1_ps(f32::from_bits((127 - 14) << 23));
    let subnormal = avx._mm256_add_ps(normal, avx._mm256_sub_ps(normal, smallest));
    let size = avx._mm256_min_ps(subnormal, normal);
    let sign = avx2._mm256_slli_epi32::<16>(avx2._mm256_and_si256(bits, avx._mm256_set1_epi32(0x8000)));
    avx._mm256_or_ps(size, cast(sign))
}
