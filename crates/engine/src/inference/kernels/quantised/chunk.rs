//! 256 numbers of a row or of a vector, as whole numbers with one factor.

use crate::inference::kernels::math::ROUND;

/// Numbers of a chunk. The blocks of all formats are as long, or fit an even number of times.
pub(super) const LENGTH: usize = 256;
/// The largest number of a vector.
///
/// A sum of 32 bits holds 256 products of it with [`LARGEST_WEIGHT`].
const LARGEST_ACTIVATION: f32 = 2047.0;
/// The largest number of a row. `Q6_K` needs one more than a number of 13 bits has.
pub(super) const LARGEST_WEIGHT: u16 = 4096;

/// Up to 256 numbers: each stands for itself times `scale`.
///
/// Aligned, so that no load of a register crosses a cache line.
#[derive(Clone, Default)]
#[repr(align(64))]
pub(super) struct Chunk {
    /// A register of AVX-512 each.
    pub groups: [[i16; 32]; LENGTH / 32],
    pub scale: f32,
}

impl Chunk {
    /// Rounds some numbers, so that the one that is furthest from zero becomes `largest`. All behind them become zero.
    #[inline(always)]
    pub(super) fn round(&mut self, from: &[f32], largest: f32) {
        let mut most = 0;
        for number in from {
            most = most.max(number.abs().to_bits());
        }
        let most = f32::from_bits(most);
        let steps = inverse(most, largest);
        self.scale = if steps > 0.0 { most / largest } else { 0.0 };
        for (group, to) in self.groups.iter_mut().enumerate() {
            for at in 0..32 {
                to[at] = from.get(32 * group + at).map_or(0, |number| to_whole(number * steps));
            }
        }
    }

    /// Rounds the numbers of a vector.
    #[inline(always)]
    pub(super) fn round_activations(&mut self, from: &[f32]) {
        self.round(from, LARGEST_ACTIVATION);
    }
}

/// Returns `largest / most`, or zero if that is not a number to multiply by.
#[inline(always)]
pub(super) fn inverse(most: f32, largest: f32) -> f32 {
    /// Below it the quotient is infinite.
    const LEAST: f32 = 1e-34;
    if most > LEAST && most < f32::INFINITY { largest / most } else { 0.0 }
}

/// Rounds to the nearest whole number, which must fit.
#[inline(always)]
pub(super) fn to_whole(number: f32) -> i16 {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are the whole number")]
    let whole = (number + ROUND).to_bits() as i16;
    whole
}
