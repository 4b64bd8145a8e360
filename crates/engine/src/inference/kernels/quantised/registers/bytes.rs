//! Products of bytes: 32 weights of a row by 32 numbers of a vector.

use super::{Portable, Registers};

/// Numbers in a register of sums. Each is a sum of four neighbouring products.
pub(in crate::inference::kernels::quantised) const EIGHT: usize = 8;

/// The distance at which [`ByteRegisters::fetch_ahead`] fetches. Half of it and twice as much were slower on an AMD EPYC, a
/// quarter and twice as much on an Intel Xeon.
#[cfg(target_arch = "x86_64")]
pub(super) const AHEAD: usize = 2048;

/// Registers of 32 bytes, and of eight numbers. Everything here must be marked `#[inline(always)]`.
pub(in crate::inference::kernels::quantised) trait ByteRegisters:
    Registers
{
    type Bytes: Copy;
    type Eight: Copy;
    /// Eight whole numbers of 32 bits.
    type Sums: Copy;
    /// Sixteen whole numbers of 16 bits.
    type Whole: Copy;

    /// Has the CPU fetch as many bytes as these, from some way further on, where nothing need be.
    fn fetch_ahead(self, bytes: &[u8]);
    fn load_bytes(self, bytes: &[u8; 32]) -> Self::Bytes;
    /// Sixteen bytes, and then sixteen others.
    fn load_halves(self, halves: [&[u8; 16]; 2]) -> Self::Bytes;
    /// The low halves of sixteen bytes, and then the high ones.
    fn nibbles(self, bytes: &[u8; 16]) -> Self::Bytes;
    /// Sixteen where a bit is set, the lowest bit first, and zero elsewhere.
    fn sixteens(self, bits: [u8; 4]) -> Self::Bytes;
    /// Shifts each byte by fewer than eight bits, and keeps those of `mask`, into which nothing of a neighbour may be shifted.
    fn right(self, bytes: Self::Bytes, by: usize, mask: u8) -> Self::Bytes;
    /// As [`ByteRegisters::right`], to the left.
    fn left(self, bytes: Self::Bytes, by: usize, mask: u8) -> Self::Bytes;
    fn either(self, left: Self::Bytes, right: Self::Bytes) -> Self::Bytes;
    /// Looks up each of 32 numbers below sixteen.
    fn look_up(self, table: &[i8; 16], numbers: Self::Bytes) -> Self::Bytes;

    /// Multiplies numbers of at most 127, without a sign, by others of at most 127.
    fn products(self, weights: Self::Bytes, numbers: &[i8; 32]) -> Self::Eight;
    /// Multiplies numbers from -128 to 127 by others of at most 127.
    fn signed_products(self, weights: Self::Bytes, numbers: &[i8; 32]) -> Self::Eight;
    /// The sums of [`ByteRegisters::products`] of two registers.
    fn paired_products(self, weights: [Self::Bytes; 2], numbers: [&[i8; 32]; 2]) -> Self::Eight;
    /// The sums of [`ByteRegisters::signed_products`] of two registers, without -128. `sizes` are the numbers without signs.
    fn signed_paired_products(
        self,
        weights: [Self::Bytes; 2],
        numbers: [&[i8; 32]; 2],
        sizes: [&[u8; 32]; 2],
    ) -> Self::Eight;

    fn eight(self, numbers: &[f32; EIGHT]) -> Self::Eight;
    fn plus(self, left: Self::Eight, right: Self::Eight) -> Self::Eight;
    fn times(self, left: Self::Eight, right: Self::Eight) -> Self::Eight;
    /// Returns `left * right + sum`.
    fn plus_times(self, sum: Self::Eight, left: Self::Eight, right: Self::Eight) -> Self::Eight;
    /// Eight times one of the numbers.
    fn one_of(self, numbers: Self::Eight, at: usize) -> Self::Eight;
    /// Four times one of the numbers, and four times the next one.
    fn two_of(self, numbers: Self::Eight, at: usize) -> Self::Eight;
    fn total(self, numbers: Self::Eight) -> f32;

    fn no_sums(self) -> Self::Sums;
    fn plus_sums(self, left: Self::Sums, right: Self::Sums) -> Self::Sums;
    fn to_eight(self, sums: Self::Sums) -> Self::Eight;
    /// The numbers at even places, and then those at odd ones.
    fn whole(self, numbers: &[i8; 16]) -> Self::Whole;
    fn whole_in_order(self, numbers: &[i8; 16]) -> Self::Whole;
    /// The first eight numbers twice.
    fn first_half_twice(self, whole: Self::Whole) -> Self::Whole;
    /// Multiplies numbers whose products have 16 bits.
    fn times_whole(self, left: Self::Whole, right: &[i16; 16]) -> Self::Whole;
    /// Multiplies as [`ByteRegisters::products`] numbers of at most 63, the first sixteen products by the number `at` of
    /// `factors`, and the others by the one eight places behind it, and adds them to the sums.
    fn plus_products(
        self,
        sums: Self::Sums,
        weights: Self::Bytes,
        numbers: &[i8; 32],
        factors: Self::Whole,
        at: usize,
    ) -> Self::Sums;
    /// Adds the products of each two neighbours.
    fn whole_products(self, left: Self::Whole, right: &[i16; 16]) -> Self::Sums;
}

impl ByteRegisters for Portable {
    type Bytes = [u8; 32];
    type Eight = [f32; EIGHT];
    type Sums = [i32; EIGHT];
    type Whole = [i16; 16];

    /// Leaves it to the CPU.
    #[inline(always)]
    fn fetch_ahead(self, _: &[u8]) {}

    #[inline(always)]
    fn load_bytes(self, bytes: &[u8; 32]) -> [u8; 32] {
        *bytes
    }

    #[inline(always)]
    fn load_halves(self, halves: [&[u8; 16]; 2]) -> [u8; 32] {
        let mut found = [0; 32];
        found[..16].copy_from_slice(halves[0]);
        found[16..].copy_from_slice(halves[1]);
        found
    }

    #[inline(always)]
    fn nibbles(self, bytes: &[u8; 16]) -> [u8; 32] {
        let mut found = [0; 32];
        for at in 0..16 {
            found[at] = bytes[at] & 15;
            found[16 + at] = bytes[at] >> 4;
        }
        found
    }

    #[inline(always)]
    fn sixteens(self, bits: [u8; 4]) -> [u8; 32] {
        let mut found = [0; 32];
        for at in 0..32 {
            found[at] = (bits[at / 8] >> (at % 8) & 1) << 4;
        }
        found
    }

    #[inline(always)]
    fn right(self, mut bytes: [u8; 32], by: usize, mask: u8) -> [u8; 32] {
        for at in 0..32 {
            bytes[at] = bytes[at] >> by & mask;
        }
        bytes
    }

    #[inline(always)]
    fn left(self, mut bytes: [u8; 32], by: usize, mask: u8) -> [u8; 32] {
        for at in 0..32 {
            bytes[at] = bytes[at] << by & mask;
        }
        bytes
    }

    #[inline(always)]
    fn either(self, mut left: [u8; 32], right: [u8; 32]) -> [u8; 32] {
        for at in 0..32 {
            left[at] |= right[at];
        }
        left
    }

    #[inline(always)]
    fn look_up(self, table: &[i8; 16], mut numbers: [u8; 32]) -> [u8; 32] {
        for at in 0..32 {
            numbers[at] = table[usize::from(numbers[at] & 15)].cast_unsigned();
        }
        numbers
    }

    #[inline(always)]
    fn products(self, weights: [u8; 32], numbers: &[i8; 32]) -> [f32; EIGHT] {
        // Below 128 there is no sign.
        self.signed_products(weights, numbers)
    }

    #[inline(always)]
    fn signed_products(self, weights: [u8; 32], numbers: &[i8; 32]) -> [f32; EIGHT] {
        self.to_eight(sums_of_four(weights, numbers))
    }

    #[inline(always)]
    fn paired_products(self, weights: [[u8; 32]; 2], numbers: [&[i8; 32]; 2]) -> [f32; EIGHT] {
        let [first, second] = [self.products(weights[0], numbers[0]), self.products(weights[1], numbers[1])];
        self.plus(first, second)
    }

    #[inline(always)]
    fn signed_paired_products(
        self,
        weights: [[u8; 32]; 2],
        numbers: [&[i8; 32]; 2],
        _: [&[u8; 32]; 2],
    ) -> [f32; EIGHT] {
        self.paired_products(weights, numbers)
    }

    #[inline(always)]
    fn eight(self, numbers: &[f32; EIGHT]) -> [f32; EIGHT] {
        *numbers
    }

    #[inline(always)]
    fn plus(self, mut left: [f32; EIGHT], right: [f32; EIGHT]) -> [f32; EIGHT] {
        for at in 0..EIGHT {
            left[at] += right[at];
        }
        left
    }

    #[inline(always)]
    fn times(self, mut left: [f32; EIGHT], right: [f32; EIGHT]) -> [f32; EIGHT] {
        for at in 0..EIGHT {
            left[at] *= right[at];
        }
        left
    }

    #[inline(always)]
    fn plus_times(self, mut sum: [f32; EIGHT], left: [f32; EIGHT], right: [f32; EIGHT]) -> [f32; EIGHT] {
        for at in 0..EIGHT {
            sum[at] += left[at] * right[at];
        }
        sum
    }

    #[inline(always)]
    fn one_of(self, numbers: [f32; EIGHT], at: usize) -> [f32; EIGHT] {
        [numbers[at]; EIGHT]
    }

    #[inline(always)]
    fn two_of(self, numbers: [f32; EIGHT], at: usize) -> [f32; EIGHT] {
        let (first, second) = (numbers[at], numbers[at + 1]);
        [first, first, first, first, second, second, second, second]
    }

    #[inline(always)]
    fn total(self, [a, b, c, d, e, f, g, h]: [f32; EIGHT]) -> f32 {
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }

    #[inline(always)]
    fn no_sums(self) -> [i32; EIGHT] {
        [0; EIGHT]
    }

    #[inline(always)]
    fn plus_sums(self, mut left: [i32; EIGHT], right: [i32; EIGHT]) -> [i32; EIGHT] {
        for at in 0..EIGHT {
            left[at] = left[at].wrapping_add(right[at]);
        }
        left
    }

    #[inline(always)]
    fn to_eight(self, sums: [i32; EIGHT]) -> [f32; EIGHT] {
        let mut found = [0.0; EIGHT];
        for at in 0..EIGHT {
            #[expect(clippy::cast_precision_loss, reason = "the products were rounded more than this")]
            let sum = sums[at] as f32;
            found[at] = sum;
        }
        found
    }

    #[inline(always)]
    fn whole(self, numbers: &[i8; 16]) -> [i16; 16] {
        let mut whole = [0; 16];
        for at in 0..EIGHT {
            whole[at] = i16::from(numbers[2 * at]);
            whole[EIGHT + at] = i16::from(numbers[2 * at + 1]);
        }
        whole
    }

    #[inline(always)]
    fn whole_in_order(self, numbers: &[i8; 16]) -> [i16; 16] {
        let mut whole = [0; 16];
        for at in 0..16 {
            whole[at] = i16::from(numbers[at]);
        }
        whole
    }

    #[inline(always)]
    fn first_half_twice(self, mut whole: [i16; 16]) -> [i16; 16] {
        for at in 0..EIGHT {
            whole[EIGHT + at] = whole[at];
        }
        whole
    }

    #[inline(always)]
    fn times_whole(self, mut left: [i16; 16], right: &[i16; 16]) -> [i16; 16] {
        for at in 0..16 {
            left[at] = left[at].wrapping_mul(right[at]);
        }
        left
    }

    #[inline(always)]
    fn plus_products(
        self,
        mut sums: [i32; EIGHT],
        weights: [u8; 32],
        numbers: &[i8; 32],
        factors: [i16; 16],
        at: usize,
    ) -> [i32; EIGHT] {
        let products = sums_of_four(weights, numbers);
        for place in 0..EIGHT {
            sums[place] += products[place] * i32::from(factors[at + EIGHT * (place / 4)]);
        }
        sums
    }

    #[inline(always)]
    fn whole_products(self, left: [i16; 16], right: &[i16; 16]) -> [i32; EIGHT] {
        let mut sums = [0; EIGHT];
        for at in 0..16 {
            sums[at / 2] += i32::from(left[at]) * i32::from(right[at]);
        }
        sums
    }
}

/// The sums of each four neighbouring products, which have 17 bits.
#[inline(always)]
fn sums_of_four(weights: [u8; 32], numbers: &[i8; 32]) -> [i32; EIGHT] {
    let mut sums = [0; EIGHT];
    for at in 0..32 {
        sums[at / 4] += i32::from(i16::from(weights[at].cast_signed()) * i16::from(numbers[at]));
    }
    sums
}
