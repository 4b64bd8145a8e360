//! `IQ4_NL` and `IQ4_XS`: numbers of four bits that choose one of sixteen values, which lie closer together near zero.

use super::{Decode, Groups, Packed, Paired, half_in, nibbles, part, steps::Steps};
use crate::inference::kernels::quantised::{
    chunk::Chunk,
    registers::{ByteRegisters, Registers},
};

/// Source: `kvalues_iq4nl` in llama.cpp.
const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Blocks of a factor and 32 numbers: those in the low halves of the bytes, then those in the high ones.
#[expect(non_camel_case_types, reason = "its name in llama.cpp")]
pub(super) struct IQ4_NL;

impl Decode for IQ4_NL {
    const CHUNK_BYTES: usize = 8 * 18;

    #[inline(always)]
    fn decode<R: Registers>(registers: R, blocks: &[u8], to: &mut Chunk) {
        let steps = Steps::new(block_factors(registers, blocks), [0.0; 8], [-127, 113], 8);
        let blocks = blocks.as_chunks::<18>().0;
        to.scale = steps.scale;
        for number in 0..blocks.len().min(8) {
            let [low, high] = nibbles(part(&blocks[number], 2));
            let (low, high) = (registers.table(&VALUES, low), registers.table(&VALUES, high));
            for at in 0..16 {
                to.groups[number][at] = steps.whole(number, i16::from(low[at]) << 8);
                to.groups[number][16 + at] = steps.whole(number, i16::from(high[at]) << 8);
            }
        }
    }
}

impl Packed for IQ4_NL {
    const SIGNED: bool = true;
    const OFFSETS: bool = false;

    type Factors = Paired;

    #[inline(always)]
    fn factors<R: Registers>(registers: R, blocks: &[u8]) -> Paired {
        Paired(Groups { factors: block_factors(registers, blocks), offsets: [0.0; 8] })
    }

    #[inline(always)]
    fn bytes<R: ByteRegisters>(registers: R, blocks: &[u8], number: usize) -> R::Bytes {
        let first = number / 2 * 36 + 2;
        values(registers, [part(blocks, first), part(blocks, first + 18)], number % 2)
    }
}

#[inline(always)]
fn block_factors<R: Registers>(registers: R, blocks: &[u8]) -> [f32; 8] {
    let blocks = blocks.as_chunks::<18>().0;
    let mut factors = [0; 8];
    for number in 0..blocks.len().min(8) {
        factors[number] = u16::from_le_bytes([blocks[number][0], blocks[number][1]]);
    }
    registers.eight_halves(&factors)
}

/// Reads the numbers in the low halves of the bytes of two groups, or in the high ones.
#[inline(always)]
fn values<R: ByteRegisters>(registers: R, groups: [&[u8; 16]; 2], side: usize) -> R::Bytes {
    registers.look_up(&VALUES, registers.right(registers.load_halves(groups), 4 * side, 15))
}

/// Blocks of a factor, eight scales of six bits, and 256 numbers, 32 in the low and the high halves of sixteen bytes.
#[expect(non_camel_case_types, reason = "its name in llama.cpp")]
pub(super) struct IQ4_XS;

impl Decode for IQ4_XS {
    const CHUNK_BYTES: usize = 136;

    #[inline(always)]
    fn decode<R: Registers>(registers: R, blocks: &[u8], to: &mut Chunk) {
        let block = part::<136>(blocks, 0);
        to.scale = half_in(registers, part(block, 0));
        let scales = small_scales(block);
        for group in 0..8 {
            let [low, high] = nibbles(part(block, 8 + 16 * group));
            let (low, high) = (registers.table(&VALUES, low), registers.table(&VALUES, high));
            for at in 0..16 {
                to.groups[group][at] = i16::from(low[at]) * scales[group];
                to.groups[group][16 + at] = i16::from(high[at]) * scales[group];
            }
        }
    }
}

impl Packed for IQ4_XS {
    const SIGNED: bool = true;
    const OFFSETS: bool = false;

    type Factors = Paired;

    #[inline(always)]
    fn factors<R: Registers>(registers: R, blocks: &[u8]) -> Paired {
        let block = part::<136>(blocks, 0);
        let (factor, scales) = (half_in(registers, part(block, 0)), small_scales(block));
        let mut factors = [0.0; 8];
        for group in 0..8 {
            factors[group] = factor * f32::from(scales[group]);
        }
        Paired(Groups { factors, offsets: [0.0; 8] })
    }

    #[inline(always)]
    fn bytes<R: ByteRegisters>(registers: R, blocks: &[u8], number: usize) -> R::Bytes {
        let first = 8 + number / 2 * 32;
        values(registers, [part(blocks, first), part(blocks, first + 16)], number % 2)
    }
}

/// Reads eight scales, from -32 to 31: their low four bits, and their high two.
#[inline(always)]
fn small_scales(block: &[u8; 136]) -> [i16; 8] {
    let highs = u16::from_le_bytes([block[2], block[3]]);
    let mut scales = [0; 8];
    for group in 0..8 {
        let low = i16::from(block[4 + group / 2] >> (4 * (group % 2)) & 15);
        scales[group] = (low | ((highs >> (2 * group) & 3) << 4).cast_signed()) - 32;
    }
    scales
}
