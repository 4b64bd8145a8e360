//! Groups of numbers with a factor and an offset each, brought to whole numbers with one factor.

use crate::inference::kernels::quantised::chunk::{LARGEST_WEIGHT, inverse, to_whole};

/// `G` factors and offsets in a form that whole numbers can be multiplied by.
///
/// A number of a group stands for `factor * number + offset`. It is computed at twice the resolution and then halved, so
/// that it is rounded and not cut off.
#[derive(Clone, Copy)]
pub(super) struct Steps<const G: usize> {
    factors: [i16; G],
    offsets: [i16; G],
    /// The factor of the whole numbers that are computed.
    pub scale: f32,
}

impl<const G: usize> Steps<G> {
    /// Takes the factors and offsets of groups of numbers from `least` to `most`, which `apply` shifts left
    /// by `shift` bits.
    #[inline(always)]
    pub(super) fn new(factors: [f32; G], offsets: [f32; G], [least, most]: [i16; 2], shift: u32) -> Self {
        let [low, high] = [f32::from(least), f32::from(most)];
        // The bits of numbers without a sign are in the order of the numbers, and cost less to compare.
        let mut sizes = [0; G];
        for group in 0..G {
            let ends = [factors[group] * low + offsets[group], factors[group] * high + offsets[group]];
            sizes[group] = ends[0].abs().to_bits().max(ends[1].abs().to_bits());
        }
        let mut bound = 0;
        for size in sizes {
            bound = bound.max(size);
        }
        let bound = f32::from_bits(bound);
        // No factor exceeds 16 bits then, also where the numbers of a group reach from minus to plus the bound, which takes
        // a divisor of 8.
        let range = (high - low) * f32::from(1_u16 << shift) / 8.05;
        let largest = range.min(f32::from(LARGEST_WEIGHT));
        let steps = inverse(bound, largest);
        // Twice the number is the upper half of a product of two numbers of 16 bits.
        let to_factor = steps * 131_072.0 / f32::from(1_u16 << shift);
        let scale = if steps > 0.0 { bound * largest.recip() } else { 0.0 };
        let mut found = Self { factors: [0; G], offsets: [0; G], scale };
        for group in 0..G {
            found.factors[group] = to_whole(factors[group] * to_factor);
            found.offsets[group] = to_whole(offsets[group] * steps * 2.0 + 1.0);
        }
        found
    }

    /// Computes one whole number of a group. It must have been shifted.
    #[inline(always)]
    pub(super) fn whole(&self, group: usize, shifted: i16) -> i16 {
        let upper = ((i32::from(shifted) * i32::from(self.factors[group])) >> 16) as i16;
        upper.wrapping_add(self.offsets[group]) >> 1
    }
}
