//! AVX2, and AVX-512 with its instruction for products of pairs.

mod bytes;

use std::{
    arch::x86_64::{__m128i, __m256, __m256i, __m512, __m512i},
    hint::black_box,
    ops::Deref,
    sync::LazyLock,
};

use pulp::{
    NullaryFnOnce, cast,
    core_arch::x86::{Sse2, Ssse3},
    x86::V3,
};

use super::{Registers, Work};
use crate::inference::kernels::math::{LANES, Lanes, from_half};

pulp::simd_type!({
    /// AVX-512 with `VNNI`, in which the compiler makes one instruction of [`Registers::multiply_add`].
    pub(in crate::inference::kernels::quantised) struct Avx512Vnni {
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

pub(in crate::inference::kernels::quantised) type Avx2 = With<V3, Halves>;
pub(in crate::inference::kernels::quantised) type Avx512 = With<Avx512Vnni, ()>;

/// Instructions, and constants for them.
#[derive(Clone, Copy)]
pub(in crate::inference::kernels::quantised) struct With<I, H> {
    instructions: I,
    /// See [`PLACES`]. The compiler does not know what is in it: it would make two instructions of a shuffle that it knows.
    places: &'static [[u8; 32]; 8],
    halves: H,
}

/// By number below eight: the shuffle that takes this number of 16 bits of each half of a register for all of the half.
const PLACES: [[u8; 32]; 8] = {
    let mut places = [[0; 32]; 8];
    let mut at = 0;
    while at < 8 * 32 {
        places[at / 32][at % 32] = (2 * (at / 32) + at % 2) as u8;
        at += 1;
    }
    places
};

/// All numbers of half precision. The factors of a matrix are close together among them, so that they stay in the cache. pulp
/// has no function for the instruction that CPUs with AVX2 have to convert them.
type Halves = &'static [f32; 1 << 16];

static HALVES: LazyLock<Box<[f32; 1 << 16]>> = LazyLock::new(|| {
    let all: Vec<f32> = (0..=u16::MAX).map(from_half).collect();
    all.try_into().expect("there are as many")
});

impl Avx2 {
    /// Returns nothing if this CPU does not have them.
    pub(in crate::inference::kernels::quantised) fn try_new() -> Option<Self> {
        let instructions = V3::try_new()?;
        Some(Self { instructions, places: black_box(&PLACES), halves: &HALVES })
    }
}

impl Avx512 {
    /// Returns nothing if this CPU does not have them.
    pub(in crate::inference::kernels::quantised) fn try_new() -> Option<Self> {
        let instructions = Avx512Vnni::try_new()?;
        Some(Self { instructions, places: black_box(&PLACES), halves: () })
    }
}

impl<I, H> Deref for With<I, H> {
    type Target = I;

    #[inline(always)]
    fn deref(&self) -> &I {
        &self.instructions
    }
}

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
    fn half(self, half: u16) -> f32 {
        self.eight_halves(&[half, 0, 0, 0, 0, 0, 0, 0])[0]
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

    #[inline(always)]
    fn six_bits(self, block: &[u8; 16]) -> [i8; 16] {
        six_bits(self.avx2, self.sse2, self.ssse3, cast(*block))
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
    fn half(self, half: u16) -> f32 {
        self.halves[usize::from(half)]
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

    #[inline(always)]
    fn six_bits(self, block: &[u8; 16]) -> [i8; 16] {
        six_bits(self.avx2, self.sse2, self.ssse3, cast(*block))
    }
}

/// See [`Registers::six_bits`].
#[inline(always)]
fn six_bits(avx2: pulp::core_arch::x86::Avx2, sse2: Sse2, ssse3: Ssse3, block: __m128i) -> [i8; 16] {
    // Four words: two factors, the factors and offsets of eight groups, and the rest of four of each.
    let low = sse2._mm_shuffle_epi32::<0b11_10_11_01>(block);
    let low = sse2._mm_and_si128(avx2._mm_srlv_epi32(low, cast([0, 0, 0, 4])), cast(LOW));
    let high = sse2._mm_srli_epi32::<2>(ssse3._mm_shuffle_epi8(block, cast(HIGH_BYTES)));
    cast(sse2._mm_or_si128(low, sse2._mm_and_si128(high, sse2._mm_set1_epi32(0x3030_3030))))
}

const LOW: [u32; 4] = [0x3f3f_3f3f, 0x0f0f_0f0f, 0x3f3f_3f3f, 0x0f0f_0f0f];
/// Zeros in the first and the third word, the high bits of factors and of offsets in the others.
const HIGH_BYTES: [i8; 16] = [-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1, 8, 9, 10, 11];

/// Converts eight numbers of half precision as [`from_half`] does, which costs less than to look them up one by one.
#[inline(always)]
fn widened(registers: Avx2, halves: __m128i) -> __m256 {
    let V3 { avx, avx2, fma, .. } = registers.instructions;
    // The bit of the sign fills all bits above the number, so that one of its copies is where it belongs.
    let bits = avx2._mm256_slli_epi32::<13>(avx2._mm256_cvtepi16_epi32(halves));
    let size = avx2._mm256_and_si256(bits, avx._mm256_set1_epi32(0x7fff << 13));
    let normal = cast(avx2._mm256_add_epi32(size, avx._mm256_set1_epi32(112 << 23)));
    let smallest = avx._mm256_set1_ps(f32::from_bits((127 - 14) << 23));
    let subnormal = fma._mm256_fmsub_ps(normal, avx._mm256_set1_ps(2.0), smallest);
    let size = avx._mm256_min_ps(subnormal, normal);
    avx._mm256_or_ps(size, avx._mm256_and_ps(cast(bits), avx._mm256_set1_ps(-0.0)))
}
