//! The kinds of factors and offsets that the formats have, and how the products of bytes are added with each of them.

use super::Packed;
use crate::inference::kernels::quantised::{
    activations::{Activations, BlockActivations, GroupActivations},
    registers::{ByteRegisters, EIGHT},
};

/// The factors and the offsets of 256 numbers. Everything here must be marked `#[inline(always)]`.
pub(in crate::inference::kernels::quantised) trait Factors:
    Copy
{
    /// Each two groups of 32 numbers are read together: the first halves of both, and then the second halves. So one register
    /// of bytes of the file is enough for both, and one register of sums.
    const PAIRED: bool = false;

    /// The form in which vectors are rounded for them.
    type Activations: Activations;

    /// Adds the products of `count` times 32 numbers, of which `bytes` returns the weights. The third sum is for the offsets.
    fn add_products<R: ByteRegisters, F: Packed<Factors = Self>>(
        &self,
        registers: R,
        bytes: impl Fn(usize) -> R::Bytes,
        activations: &Self::Activations,
        count: usize,
        sums: &mut [R::Eight; 3],
    );
}

/// A factor and an offset for each group of 32 numbers.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub factors: [f32; EIGHT],
    pub offsets: [f32; EIGHT],
}

impl Groups {
    /// Returns the factors times those of the activations.
    #[inline(always)]
    fn scaled<R: ByteRegisters>(&self, registers: R, activations: &GroupActivations) -> R::Eight {
        registers.times(registers.eight(&self.factors), registers.eight(&activations.scales))
    }

    #[inline(always)]
    fn add_offsets<R: ByteRegisters, F: Packed>(
        &self,
        registers: R,
        activations: &GroupActivations,
        to: &mut R::Eight,
    ) {
        if F::OFFSETS {
            let sums = registers.eight(&activations.sums);
            *to = registers.plus_times(*to, registers.eight(&self.offsets), sums);
        }
    }
}

impl Factors for Groups {
    type Activations = GroupActivations;

    #[inline(always)]
    fn add_products<R: ByteRegisters, F: Packed<Factors = Self>>(
        &self,
        registers: R,
        bytes: impl Fn(usize) -> R::Bytes,
        activations: &GroupActivations,
        count: usize,
        sums: &mut [R::Eight; 3],
    ) {
        let scaled = self.scaled(registers, activations);
        for number in 0..count {
            let numbers = &activations.numbers[number];
            let products = match F::SIGNED {
                true => registers.signed_products(bytes(number), numbers),
                false => registers.products(bytes(number), numbers),
            };
            let factors = registers.one_of(scaled, number);
            // By turns, so that one addition need not wait for the one before it.
            sums[number % 2] = registers.plus_times(sums[number % 2], products, factors);
        }
        self.add_offsets::<R, F>(registers, activations, &mut sums[2]);
    }
}

/// The same, of groups that are read in pairs.
#[derive(Clone, Copy)]
pub(super) struct Paired(pub Groups);

impl From<Groups> for Paired {
    #[inline(always)]
    fn from(groups: Groups) -> Self {
        Self(groups)
    }
}

impl Factors for Paired {
    const PAIRED: bool = true;

    type Activations = GroupActivations;

    #[inline(always)]
    fn add_products<R: ByteRegisters, F: Packed<Factors = Self>>(
        &self,
        registers: R,
        bytes: impl Fn(usize) -> R::Bytes,
        activations: &GroupActivations,
        count: usize,
        sums: &mut [R::Eight; 3],
    ) {
        let scaled = self.0.scaled(registers, activations);
        for number in 0..count / 2 {
            let [first, second] = [2 * number, 2 * number + 1];
            let bytes = [bytes(first), bytes(second)];
            let numbers = [&activations.paired[first], &activations.paired[second]];
            let products = if F::SIGNED {
                let sizes = [&activations.paired_sizes[first], &activations.paired_sizes[second]];
                registers.signed_paired_products(bytes, numbers, sizes)
            } else {
                registers.paired_products(bytes, numbers)
            };
            let factors = registers.two_of(scaled, first);
            sums[number % 2] = registers.plus_times(sums[number % 2], products, factors);
        }
        self.0.add_offsets::<R, F>(registers, activations, &mut sums[2]);
    }
}

/// Whole factors and whole offsets of eight groups of 32 numbers, and what all factors and all offsets are multiplied by.
///
/// Whole factors times numbers must not exceed 128 times 63. All products of 256 numbers are added as whole numbers, and
/// converted and multiplied once.
#[derive(Clone, Copy)]
pub(super) struct WholeGroups {
    /// The factors, and then the offsets.
    pub whole: [i8; 2 * EIGHT],
    pub factor: f32,
    pub offset: f32,
}

impl WholeGroups {
    /// Returns the factors and the offsets as they are meant.
    #[inline(always)]
    pub(super) fn groups(&self) -> Groups {
        let mut groups = Groups { factors: [0.0; EIGHT], offsets: [0.0; EIGHT] };
        for at in 0..EIGHT {
            groups.factors[at] = self.factor * f32::from(self.whole[at]);
            groups.offsets[at] = self.offset * f32::from(self.whole[EIGHT + at]);
        }
        groups
    }
}

impl Factors for WholeGroups {
    type Activations = BlockActivations;

    #[inline(always)]
    fn add_products<R: ByteRegisters, F: Packed<Factors = Self>>(
        &self,
        registers: R,
        bytes: impl Fn(usize) -> R::Bytes,
        activations: &BlockActivations,
        count: usize,
        sums: &mut [R::Eight; 3],
    ) {
        let whole = registers.times_whole(registers.whole_in_order(&self.whole), &activations.ratios);
        let products =
            whole_products(registers, registers.first_half_twice(whole), bytes, activations, count);
        add_whole(registers, &mut sums[0], products, self.factor * activations.scale);
        let products = registers.whole_products(whole, &activations.sums);
        add_whole(registers, &mut sums[2], products, self.offset * activations.scale);
    }
}

/// The same of sixteen groups of sixteen numbers.
#[derive(Clone, Copy)]
pub(super) struct WholeHalves {
    pub factors: [i8; 2 * EIGHT],
    pub offsets: [i8; 2 * EIGHT],
    pub factor: f32,
    pub offset: f32,
}

impl WholeHalves {
    /// Returns the factors and the offsets as they are meant.
    #[inline(always)]
    pub(super) fn groups(&self) -> [[f32; 2 * EIGHT]; 2] {
        let [mut factors, mut offsets] = [[0.0; 2 * EIGHT]; 2];
        for at in 0..2 * EIGHT {
            factors[at] = self.factor * f32::from(self.factors[at]);
            offsets[at] = self.offset * f32::from(self.offsets[at]);
        }
        [factors, offsets]
    }
}

impl Factors for WholeHalves {
    type Activations = BlockActivations;

    #[inline(always)]
    fn add_products<R: ByteRegisters, F: Packed<Factors = Self>>(
        &self,
        registers: R,
        bytes: impl Fn(usize) -> R::Bytes,
        activations: &BlockActivations,
        count: usize,
        sums: &mut [R::Eight; 3],
    ) {
        let factors = registers.times_whole(registers.whole(&self.factors), &activations.ratios);
        let products = whole_products(registers, factors, bytes, activations, count);
        add_whole(registers, &mut sums[0], products, self.factor * activations.scale);
        let offsets = registers.times_whole(registers.whole(&self.offsets), &activations.ratios);
        let products = registers.whole_products(offsets, &activations.half_sums);
        add_whole(registers, &mut sums[2], products, self.offset * activations.scale);
    }
}

/// Multiplies `count` times 32 numbers with whole factors.
#[inline(always)]
fn whole_products<R: ByteRegisters>(
    registers: R,
    factors: R::Whole,
    bytes: impl Fn(usize) -> R::Bytes,
    activations: &BlockActivations,
    count: usize,
) -> R::Sums {
    let mut sums = [registers.no_sums(); 2];
    for number in 0..count {
        let numbers = &activations.numbers[number];
        // By turns, so that one addition need not wait for the one before it.
        sums[number % 2] = registers.plus_products(sums[number % 2], bytes(number), numbers, factors, number);
    }
    registers.plus_sums(sums[0], sums[1])
}

/// Adds whole sums times a factor to others.
#[inline(always)]
fn add_whole<R: ByteRegisters>(registers: R, to: &mut R::Eight, sums: R::Sums, factor: f32) {
    *to = registers.plus_times(*to, registers.to_eight(sums), registers.eight(&[factor; EIGHT]));
}
