//! One vector, rounded to bytes, in the two forms in which the formats want it.

use std::sync::OnceLock;

use super::{
    Input,
    chunk::{LENGTH, inverse},
    registers::EIGHT,
};
use crate::inference::kernels::math::{ROUND, with_widest_simd};

/// Numbers of a group.
const GROUP: usize = 32;
/// Groups of 256 numbers.
const GROUPS: usize = LENGTH / GROUP;
/// The largest number of a vector. With a sign it fits into a byte.
const LARGEST: f32 = 127.0;

/// Up to 256 numbers of a vector, rounded. Those behind the last one are zero.
pub(super) trait Activations: Default + Clone + Sync {
    /// Returns the place of some vectors where they are kept.
    fn of_input<'a>(input: &'a Input<'_>) -> &'a OnceLock<Vec<Vec<Self>>>;

    /// Rounds at most 256 numbers. Must be marked `#[inline(always)]`.
    fn round(&mut self, numbers: &[f32]);

    /// Rounds a vector.
    fn of(vector: &[f32]) -> Vec<Self> {
        let mut found = vec![Self::default(); vector.len().div_ceil(LENGTH)];
        with_widest_simd(
            #[inline(always)]
            || {
                for (to, numbers) in found.iter_mut().zip(vector.chunks(LENGTH)) {
                    to.round(numbers);
                }
            },
        );
        found
    }
}

/// Each 32 numbers have a factor, as in llama.cpp for the same formats.
///
/// Aligned, so that no load of a register crosses a cache line.
#[derive(Clone, Default)]
#[repr(align(64))]
pub(super) struct GroupActivations {
    pub numbers: [[i8; GROUP]; GROUPS],
    /// The numbers in another order: of each two groups the first halves, and then the second halves.
    pub paired: [[i8; GROUP]; GROUPS],
    /// The same without their signs.
    pub paired_sizes: [[u8; GROUP]; GROUPS],
    /// The factor of each group.
    pub scales: [f32; EIGHT],
    /// The sum of each group, with its factor.
    pub sums: [f32; EIGHT],
}

impl Activations for GroupActivations {
    fn of_input<'a>(input: &'a Input<'_>) -> &'a OnceLock<Vec<Vec<Self>>> {
        &input.groups
    }

    #[inline(always)]
    fn round(&mut self, numbers: &[f32]) {
        for (group, numbers) in numbers.chunks(GROUP).enumerate() {
            self.round_group(group, numbers);
        }
    }
}

impl GroupActivations {
    /// Rounds one group, so that the number that is furthest from zero becomes [`LARGEST`].
    #[inline(always)]
    fn round_group(&mut self, group: usize, from: &[f32]) {
        let mut numbers = [0.0; GROUP];
        numbers[..from.len()].copy_from_slice(from);
        let most = furthest(&numbers);
        let steps = inverse(most, LARGEST);
        let scale = if steps > 0.0 { most / LARGEST } else { 0.0 };
        self.numbers[group] = rounded(&numbers, steps);
        let mut sum = 0;
        let (pair, half) = (group / 2 * 2, GROUP / 2);
        for at in 0..GROUP {
            let whole = self.numbers[group][at];
            let (side, place) = (at / half, group % 2 * half + at % half);
            self.paired[pair + side][place] = whole;
            self.paired_sizes[pair + side][place] = whole.unsigned_abs();
            sum += i32::from(whole);
        }
        self.scales[group] = scale;
        // An infinite sum times a weight of zero would not be a number.
        #[expect(clippy::cast_precision_loss, reason = "a sum of 32 bytes is small")]
        let sum = (sum as f32 * scale).clamp(f32::MIN, f32::MAX);
        self.sums[group] = sum;
    }
}

/// All 256 numbers have one factor, and each 32 of them a small whole one besides, so that all their products can be added as
/// whole numbers. For the same formats llama.cpp has one factor for all, which is coarser.
///
/// Aligned, so that no load of a register crosses a cache line.
#[derive(Clone, Default)]
#[repr(align(64))]
pub(super) struct BlockActivations {
    pub numbers: [[i8; GROUP]; GROUPS],
    /// The whole factor of each group, from zero to [`LARGEST_RATIO`], and then all of them again.
    pub ratios: [i16; 2 * GROUPS],
    /// The sums of the first halves of the groups, and then those of the second ones, without factors.
    pub half_sums: [i16; 2 * GROUPS],
    /// Eight zeros, and then the sums of the groups.
    pub sums: [i16; 2 * GROUPS],
    pub scale: f32,
}

/// The largest whole factor of a group. With it the products of 256 numbers of every format fit into sums of 32 bits: those of
/// `Q6_K` are the largest, of which eight times four numbers of at most 63 times 127, times a scale of at most 128 and this
/// number, are added.
const LARGEST_RATIO: f32 = 63.0;

impl Activations for BlockActivations {
    fn of_input<'a>(input: &'a Input<'_>) -> &'a OnceLock<Vec<Vec<Self>>> {
        &input.blocks
    }

    #[inline(always)]
    fn round(&mut self, from: &[f32]) {
        let mut numbers = [[0.0; GROUP]; GROUPS];
        numbers.as_flattened_mut()[..from.len()].copy_from_slice(from);
        let mut sizes = [0.0_f32; GROUPS];
        let mut most = 0;
        for group in 0..GROUPS {
            sizes[group] = furthest(&numbers[group]);
            most = most.max(sizes[group].to_bits());
        }
        let most = f32::from_bits(most);
        let ratios = inverse(most, LARGEST_RATIO);
        self.scale = if ratios > 0.0 { most / (LARGEST_RATIO * LARGEST) } else { 0.0 };
        for group in 0..GROUPS {
            // Rounded up, so that no number of the group exceeds the largest.
            let ratio = (sizes[group] * ratios).ceil().min(LARGEST_RATIO);
            let steps = if ratio > 0.0 { ratios * LARGEST / ratio } else { 0.0 };
            self.numbers[group] = rounded(&numbers[group], steps);
            self.sums[GROUPS + group] = 0;
            for half in 0..2 {
                let mut sum = 0;
                for at in 0..GROUP / 2 {
                    sum += i16::from(self.numbers[group][half * GROUP / 2 + at]);
                }
                #[expect(clippy::cast_possible_truncation, reason = "it is a small whole number")]
                let ratio = ratio as i16;
                self.ratios[half * GROUPS + group] = ratio;
                self.half_sums[half * GROUPS + group] = sum;
                self.sums[GROUPS + group] += sum;
            }
        }
    }
}

/// The size of the number that is furthest from zero. It is not a number if one of them is none.
#[inline(always)]
fn furthest(numbers: &[f32; GROUP]) -> f32 {
    let mut most = 0;
    for number in numbers {
        most = most.max(number.abs().to_bits());
    }
    f32::from_bits(most)
}

#[inline(always)]
fn rounded(numbers: &[f32; GROUP], steps: f32) -> [i8; GROUP] {
    let mut found = [0; GROUP];
    for at in 0..GROUP {
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are the whole number")]
        let whole = (numbers[at] * steps + ROUND).to_bits() as i8;
        found[at] = whole;
    }
    found
}
