//! One vector, rounded to bytes.

use super::{
    chunk::{LENGTH, inverse},
    registers::EIGHT,
};
use crate::inference::kernels::math::{ROUND, with_widest_simd};

/// Numbers with one factor. As many as llama.cpp has for most formats; for some of them it has 256.
const GROUP: usize = 32;

/// Up to 256 numbers of a vector. Those behind the last one are zero.
///
/// Aligned, so that no load of a register crosses a cache line.
#[derive(Clone, Default)]
#[repr(align(64))]
pub(super) struct Activations {
    /// At most 127, with a sign.
    pub numbers: [[i8; GROUP]; LENGTH / GROUP],
    /// The numbers in another order: of each two groups the first halves, and then the second halves.
    pub paired: [[i8; GROUP]; LENGTH / GROUP],
    /// The same without their signs.
    pub paired_sizes: [[u8; GROUP]; LENGTH / GROUP],
    /// The factor of each group.
    pub scales: [f32; EIGHT],
    /// The sum of each group, with its factor.
    pub sums: [f32; EIGHT],
    /// The sums of both halves of each group, likewise.
    pub half_sums: [[f32; EIGHT]; 2],
}

impl Activations {
    /// Rounds a vector.
    pub(super) fn of(vector: &[f32]) -> Vec<Self> {
        let mut found = vec![Self::default(); vector.len().div_ceil(LENGTH)];
        with_widest_simd(
            #[inline(always)]
            || {
                for (to, numbers) in found.iter_mut().zip(vector.chunks(LENGTH)) {
                    for (group, numbers) in numbers.chunks(GROUP).enumerate() {
                        to.round(group, numbers);
                    }
                }
            },
        );
        found
    }

    /// Rounds one group, so that the number that is furthest from zero becomes 127.
    #[inline(always)]
    fn round(&mut self, group: usize, from: &[f32]) {
        let mut numbers = [0.0; GROUP];
        numbers[..from.len()].copy_from_slice(from);
        let mut most = 0;
        for number in numbers {
            most = most.max(number.abs().to_bits());
        }
        let most = f32::from_bits(most);
        let steps = inverse(most, 127.0);
        let scale = if steps > 0.0 { most / 127.0 } else { 0.0 };
        let mut sums = [0; 2];
        let (pair, half) = (group / 2 * 2, GROUP / 2);
        for at in 0..GROUP {
            #[expect(clippy::cast_possible_truncation, reason = "the low bits are the whole number")]
            let whole = (numbers[at] * steps + ROUND).to_bits() as i8;
            self.numbers[group][at] = whole;
            let (side, place) = (at / half, group % 2 * half + at % half);
            self.paired[pair + side][place] = whole;
            self.paired_sizes[pair + side][place] = whole.unsigned_abs();
            sums[side] += i32::from(whole);
        }
        // An infinite sum times a weight of zero would not be a number.
        #[expect(clippy::cast_precision_loss, reason = "a sum of 32 bytes is small")]
        let [both, left, right] =
            [sums[0] + sums[1], sums[0], sums[1]].map(|sum| (sum as f32 * scale).clamp(f32::MIN, f32::MAX));
        self.scales[group] = scale;
        self.sums[group] = both;
        self.half_sums[group / 4][group % 4 * 2] = left;
        self.half_sums[group / 4][group % 4 * 2 + 1] = right;
    }
}
