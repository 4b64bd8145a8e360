//! Numbers that are multiplied as bytes, without being decoded first.

use super::{Decode, Factors};
use crate::inference::kernels::quantised::registers::{ByteRegisters, Registers};

/// A format whose numbers are whole numbers of eight bits, times the factor of their group plus the offset of the group.
///
/// A group is 32 neighbouring numbers, or half of them if [`Packed::Factors`] are `WholeHalves`.
pub(in crate::inference::kernels::quantised) trait Packed:
    Decode
{
    /// The numbers have signs. Those that have none are at most 63, and those in pairs are none of them -128.
    const SIGNED: bool = false;
    /// There are offsets other than zero.
    const OFFSETS: bool = true;

    type Factors: Factors;

    /// Reads the factors and the offsets of whole blocks, of at most 256 numbers. Those of groups that are not there are
    /// zero.
    fn factors<R: Registers>(registers: R, blocks: &[u8]) -> Self::Factors;

    /// Reads 32 of the numbers, which are neighbours unless [`Factors::PAIRED`]. Must be marked `#[inline(always)]`.
    fn bytes<R: ByteRegisters>(registers: R, blocks: &[u8], number: usize) -> R::Bytes;
}

/// Something to be compiled for each packed format.
pub(in crate::inference::kernels::quantised) trait PackedJob {
    fn run<F: Packed>(self);
}
