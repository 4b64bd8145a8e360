//! Numbers that are multiplied as bytes, without being decoded first.

use super::Decode;
use crate::inference::kernels::quantised::{
    activations::Activations,
    registers::{ByteRegisters, EIGHT, Registers},
};

/// A format whose numbers are whole numbers of eight bits, times the factor of their group plus the offset of the group.
///
/// A group is 32 neighbouring numbers, or half of them if [`Packed::Factors`] are [`Small`].
pub(in crate::inference::kernels::quantised) trait Packed:
    Decode
{
    /// The numbers have signs. Those that have none are at most 63, and those in pairs are none of them -128.
    const SIGNED: bool = false;
    /// There are offsets other than zero.
    const OFFSETS: bool = true;

    /// One number for each group of 256 numbers.
    type Factors: Factors;

    /// Reads the factors and the offsets of whole blocks, of at most 256 numbers. Those of groups that are not there are
    /// zero.
    fn factors<R: Registers>(registers: R, blocks: &[u8]) -> [Self::Factors; 2];

    /// Reads 32 of the numbers, which are neighbours unless [`Factors::PAIRED`]. Must be marked `#[inline(always)]`.
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
    /// Each two groups of 32 numbers are read together: the first halves of both, and then the second halves. So one register
    /// of bytes of the file is enough for both, and one register of sums.
    const PAIRED: bool = false;

    /// Some of them in registers.
    type In<R: ByteRegisters>: Copy;

    /// Multiplies each by the factor of the activations that it belongs to.
    fn scaled<R: ByteRegisters>(&self, registers: R, activations: &Activations) -> Self::In<R>;
    /// Multiplies 32 numbers without a sign, and adds four products each. The sums are multiplied by what is whole in the
    /// factors, if anything is.
    #[inline(always)]
    fn products<R: ByteRegisters>(
        registers: R,
        _: Self::In<R>,
        _: usize,
        weights: R::Bytes,
        numbers: &[i8; 32],
    ) -> R::Eight {
        registers.products(weights, numbers)
    }
    /// Returns what belongs to each of the eight sums of 32 products, or of 64 if [`Factors::PAIRED`].
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

/// The factors of groups that are read in pairs.
#[derive(Clone, Copy)]
pub(in crate::inference::kernels::quantised) struct Paired(pub [f32; 8]);

impl From<[f32; 8]> for Paired {
    #[inline(always)]
    fn from(numbers: [f32; 8]) -> Self {
        Self(numbers)
    }
}

impl Factors for Paired {
    const PAIRED: bool = true;

    type In<R: ByteRegisters> = R::Eight;

    #[inline(always)]
    fn scaled<R: ByteRegisters>(&self, registers: R, activations: &Activations) -> R::Eight {
        self.0.scaled(registers, activations)
    }

    #[inline(always)]
    fn of<R: ByteRegisters>(registers: R, scaled: R::Eight, number: usize) -> R::Eight {
        registers.two_of(scaled, 2 * number)
    }

    #[inline(always)]
    fn add<R: ByteRegisters>(&self, registers: R, activations: &Activations, to: R::Eight) -> R::Eight {
        self.0.add(registers, activations, to)
    }
}

/// Small whole factors of sixteen groups, and the factor of all.
#[derive(Clone, Copy)]
pub(in crate::inference::kernels::quantised) struct Small {
    pub whole: [i8; 16],
    pub factor: f32,
}

impl Small {
    /// Returns the factors of the groups.
    #[inline(always)]
    pub(super) fn all(&self) -> [f32; 16] {
        let mut all = [0.0; 16];
        for group in 0..16 {
            all[group] = self.factor * f32::from(self.whole[group]);
        }
        all
    }
}

impl Factors for Small {
    type In<R: ByteRegisters> = (R::Whole, R::Eight);

    #[inline(always)]
    fn scaled<R: ByteRegisters>(&self, registers: R, activations: &Activations) -> Self::In<R> {
        let factor = registers.eight(&[self.factor; EIGHT]);
        let scales = registers.times(registers.eight(&activations.scales), factor);
        (registers.whole(&self.whole), scales)
    }

    #[inline(always)]
    fn products<R: ByteRegisters>(
        registers: R,
        (whole, _): Self::In<R>,
        number: usize,
        weights: R::Bytes,
        numbers: &[i8; 32],
    ) -> R::Eight {
        registers.products_with(weights, numbers, whole, number)
    }

    #[inline(always)]
    fn of<R: ByteRegisters>(registers: R, (_, scales): Self::In<R>, number: usize) -> R::Eight {
        registers.one_of(scales, number)
    }

    #[inline(always)]
    fn add<R: ByteRegisters>(&self, registers: R, activations: &Activations, to: R::Eight) -> R::Eight {
        let [mut low, mut high] = [[0; EIGHT]; 2];
        low.copy_from_slice(&self.whole[..EIGHT]);
        high.copy_from_slice(&self.whole[EIGHT..]);
        let factor = registers.eight(&[self.factor; EIGHT]);
        let low = registers.times(registers.whole_eight(&low), factor);
        let high = registers.times(registers.whole_eight(&high), factor);
        let to = registers.plus_times(to, low, registers.eight(&activations.half_sums[0]));
        registers.plus_times(to, high, registers.eight(&activations.half_sums[1]))
    }
}
