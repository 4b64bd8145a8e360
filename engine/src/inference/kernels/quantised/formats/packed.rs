//! Numbers that are multiplied as bytes, without being decoded first.

use super::Decode;
use crate::inference::kernels::quantised::{
    activations::Activations,
    registers::{ByteRegisters, EIGHT},
};

/// A format whose numbers are whole numbers of eight bits, times the factor of their group plus the offset of the group.
///
/// A group is 32 neighbouring numbers, or half of them if [`Packed::Factors`] are sixteen.
pub(in crate::inference::kernels::quantised) trait Packed:
    Decode
{
    /// The numbers have signs. Those that have none are at most 63.
    const SIGNED: bool = false;
    /// There are offsets other than zero.
    const OFFSETS: bool = true;

    /// One number for each group of 256 numbers.
    type Factors: Factors;

    /// Reads the factors and the offsets of whole blocks, of at most 256 numbers. Those of groups that are not there are
    /// zero.
    fn factors(blocks: &[u8]) -> [Self::Factors; 2];

    /// Reads 32 of the numbers. Must be marked `#[inline(always)]`.
    fn bytes<R: ByteRegisters>(registers: R, blocks: &[u8], number: usize) -> R::Bytes;
}

/// Something to be compiled for each packed format.
pub(in crate::inference::kernels::quantised) trait PackedJob {
    fn run<F: Packed>(self);
}

/// The factors or the offsets of 256 numbers. Everything here must be marked `#[inline(always)]`.
pub(in crate::inference::kernels::quantised) trait Factors:
    Copy
{
    /// Some of them in registers.
    type In<R: ByteRegisters>: Copy;

    /// Multiplies each by the factor of the activations that it belongs to.
    fn scaled<R: ByteRegisters>(&self, registers: R, activations: &Activations) -> Self::In<R>;
    /// Returns what belongs to each of the eight sums of 32 products.
    fn of<R: ByteRegisters>(registers: R, scaled: Self::In<R>, number: usize) -> R::Eight;
    /// Adds the products of all, as offsets, with the sums of the activations.
    fn add<R: ByteRegisters>(&self, registers: R, activations: &Activations, to: R::Eight) -> R::Eight;
}

impl Factors for [f32; 8] {
    type In<R: ByteRegisters> = R::Eight;

    #[inline(always)]
    fn scaled<R: ByteRegisters>(&self, registers: R, activations: &Activations) -> R::Eight {
        registers.times(registers.eight(self), registers.eight(&activations.scales))
    }

    #[inline(always)]
    fn of<R: ByteRegisters>(registers: R, scaled: R::Eight, number: usize) -> R::Eight {
        registers.one_of(scaled, number)
    }

    #[inline(always)]
    fn add<R: ByteRegisters>(&self, registers: R, activations: &Activations, to: R::Eight) -> R::Eight {
        registers.plus_times(to, registers.eight(self), registers.eight(&activations.sums))
    }
}

impl Factors for [f32; 16] {
    type In<R: ByteRegisters> = [R::Eight; 2];

    #[inline(always)]
    fn scaled<R: ByteRegisters>(&self, registers: R, activations: &Activations) -> [R::Eight; 2] {
        let [mut low, mut high] = [[0.0; EIGHT]; 2];
        for at in 0..EIGHT {
            low[at] = self[at] * activations.scales[at / 2];
            high[at] = self[EIGHT + at] * activations.scales[EIGHT / 2 + at / 2];
        }
        [registers.eight(&low), registers.eight(&high)]
    }

    #[inline(always)]
    fn of<R: ByteRegisters>(registers: R, scaled: [R::Eight; 2], number: usize) -> R::Eight {
        registers.two_of(scaled[number / 4], number % 4 * 2)
    }

    #[inline(always)]
    fn add<R: ByteRegisters>(&self, registers: R, activations: &Activations, to: R::Eight) -> R::Eight {
        let [mut low, mut high] = [[0.0; EIGHT]; 2];
        low.copy_from_slice(&self[..EIGHT]);
        high.copy_from_slice(&self[EIGHT..]);
        let to = registers.plus_times(to, registers.eight(&low), registers.eight(&activations.half_sums[0]));
        registers.plus_times(to, registers.eight(&high), registers.eight(&activations.half_sums[1]))
    }
}
