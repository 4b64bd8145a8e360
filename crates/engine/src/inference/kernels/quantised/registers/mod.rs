//! The few instructions that the products are made of, for each kind of CPU.
//!
//! The rest of the products is plain Rust. Compiled inside [`Registers::vectorise`], it becomes instructions of the same kind.

mod bytes;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::inference::kernels::math::{LANES, Lanes, from_half};
#[cfg(target_arch = "x86_64")]
use crate::inference::kernels::simd::ARCH;

pub(super) use bytes::{ByteRegisters, EIGHT};
#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

/// Sixteen sums at a time. Everything here must be marked `#[inline(always)]`.
pub(super) trait Registers: Copy + Send + Sync {
    type Ints: Copy;
    type Floats: Copy;

    /// Runs `work`, compiled for these registers.
    fn vectorise<W: Work>(self, work: W);

    fn zero(self) -> Self::Ints;
    /// Loads a pair of numbers for each sum.
    fn load(self, pairs: &[i16; 32]) -> Self::Ints;
    /// The same pair for each sum.
    fn splat(self, pair: [i16; 2]) -> Self::Ints;
    /// Adds the products of each two pairs to a sum.
    fn multiply_add(self, sums: Self::Ints, left: Self::Ints, right: Self::Ints) -> Self::Ints;
    fn to_floats(self, ints: Self::Ints) -> Self::Floats;

    fn load_floats(self, floats: &Lanes) -> Self::Floats;
    /// Converts numbers of half precision.
    fn halves(self, halves: &[[u8; 2]; LANES]) -> Self::Floats;
    /// As [`Registers::halves`].
    fn eight_halves(self, halves: &[u16; 8]) -> [f32; 8];
    /// As [`Registers::halves`].
    fn half(self, half: u16) -> f32;
    fn splat_float(self, float: f32) -> Self::Floats;
    fn multiply(self, left: Self::Floats, right: Self::Floats) -> Self::Floats;
    /// Returns `left * right + sum`.
    fn multiply_add_floats(self, left: Self::Floats, right: Self::Floats, sum: Self::Floats) -> Self::Floats;
    fn lanes(self, floats: Self::Floats) -> Lanes;

    /// Looks up sixteen numbers below sixteen.
    fn table(self, table: &[i8; 16], numbers: [u8; 16]) -> [i8; 16];
    /// Unpacks the eight whole factors and the eight whole offsets of six bits of a block that begins like this. They are in
    /// the last twelve bytes. Source: `get_scale_min_k4` in llama.cpp.
    fn six_bits(self, block: &[u8; 16]) -> [i8; 16];
}

/// Something to be compiled for one kind of registers.
pub(super) trait Work {
    /// Must be marked `#[inline(always)]`.
    fn run(self);
}

/// The widest registers for which there is a form of the products.
#[derive(Clone, Copy)]
pub(super) enum Widest {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable,
}

/// Returns the widest registers that this CPU has.
pub(super) fn widest() -> Widest {
    #[cfg(target_arch = "x86_64")]
    {
        use pulp::x86::Arch;
        if let Arch::V4(_) = *ARCH
            && let Some(registers) = Avx512::try_new()
        {
            return Widest::Avx512(registers);
        }
        if let Some(registers) = Avx2::try_new() {
            return Widest::Avx2(registers);
        }
    }
    Widest::Portable
}

/// The instructions of every CPU. The compiler uses those that all CPUs that it compiles for have.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Registers for Portable {
    type Ints = [i32; LANES];
    type Floats = Lanes;

    fn vectorise<W: Work>(self, work: W) {
        work.run();
    }

    #[inline(always)]
    fn zero(self) -> Self::Ints {
        [0; LANES]
    }

    #[inline(always)]
    fn load(self, pairs: &[i16; 32]) -> Self::Ints {
        let mut ints = [0; LANES];
        for lane in 0..LANES {
            ints[lane] = joined([pairs[2 * lane], pairs[2 * lane + 1]]);
        }
        ints
    }

    #[inline(always)]
    fn splat(self, pair: [i16; 2]) -> Self::Ints {
        [joined(pair); LANES]
    }

    #[inline(always)]
    fn multiply_add(self, mut sums: Self::Ints, left: Self::Ints, right: Self::Ints) -> Self::Ints {
        for lane in 0..LANES {
            let (left, right) = (left[lane], right[lane]);
            // The low half with its sign, and the high one.
            let low = (left << 16 >> 16) * (right << 16 >> 16);
            sums[lane] = sums[lane].wrapping_add(low).wrapping_add((left >> 16) * (right >> 16));
        }
        sums
    }

    #[inline(always)]
    fn to_floats(self, ints: Self::Ints) -> Self::Floats {
        let mut floats = [0.0; LANES];
        for lane in 0..LANES {
            #[expect(clippy::cast_precision_loss, reason = "the products were rounded more than this")]
            let float = ints[lane] as f32;
            floats[lane] = float;
        }
        floats
    }

    #[inline(always)]
    fn load_floats(self, floats: &Lanes) -> Self::Floats {
        *floats
    }

    #[inline(always)]
    fn halves(self, halves: &[[u8; 2]; LANES]) -> Self::Floats {
        let mut floats = [0.0; LANES];
        for lane in 0..LANES {
            floats[lane] = from_half(u16::from_le_bytes(halves[lane]));
        }
        floats
    }

    #[inline(always)]
    fn eight_halves(self, halves: &[u16; 8]) -> [f32; 8] {
        let mut floats = [0.0; 8];
        for at in 0..8 {
            floats[at] = from_half(halves[at]);
        }
        floats
    }

    #[inline(always)]
    fn half(self, half: u16) -> f32 {
        from_half(half)
    }

    #[inline(always)]
    fn splat_float(self, float: f32) -> Self::Floats {
        [float; LANES]
    }

    #[inline(always)]
    fn multiply(self, mut left: Self::Floats, right: Self::Floats) -> Self::Floats {
        for lane in 0..LANES {
            left[lane] *= right[lane];
        }
        left
    }

    #[inline(always)]
    fn multiply_add_floats(
        self,
        left: Self::Floats,
        right: Self::Floats,
        mut sum: Self::Floats,
    ) -> Self::Floats {
        for lane in 0..LANES {
            sum[lane] += left[lane] * right[lane];
        }
        sum
    }

    #[inline(always)]
    fn lanes(self, floats: Self::Floats) -> Lanes {
        floats
    }

    #[inline(always)]
    fn table(self, table: &[i8; 16], numbers: [u8; 16]) -> [i8; 16] {
        let mut found = [0; 16];
        for at in 0..16 {
            found[at] = table[usize::from(numbers[at] & 15)];
        }
        found
    }

    #[inline(always)]
    fn six_bits(self, block: &[u8; 16]) -> [i8; 16] {
        let mut found = [0; 16];
        for at in 0..4 {
            let [factors, offsets, high] = [block[4 + at], block[8 + at], block[12 + at]];
            found[at] = (factors & 63).cast_signed();
            found[4 + at] = (high & 15 | factors >> 6 << 4).cast_signed();
            found[8 + at] = (offsets & 63).cast_signed();
            found[12 + at] = (high >> 4 | offsets >> 6 << 4).cast_signed();
        }
        found
    }
}

/// Both numbers of a pair in one, the first in its low half.
#[inline(always)]
fn joined([low, high]: [i16; 2]) -> i32 {
    i32::from(high) << 16 | i32::from(low) & 0xffff
}
