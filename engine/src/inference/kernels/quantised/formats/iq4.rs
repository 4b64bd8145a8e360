//! `IQ4_NL` and `IQ4_XS`: numbers of four bits that choose one of sixteen values, which lie closer together near zero.

use super::{Decode, half, halves, nibbles, part, steps::Steps};
use crate::inference::kernels::quantised::{chunk::Chunk, registers::Registers};

/// Source: `kvalues_iq4nl` in llama.cpp.
const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Blocks of a factor and 32 numbers: those in the low halves of the bytes, then those in the high ones.
#[expect(non_camel_case_types, reason = "its name in llama.cpp")]
pub(super) struct IQ4_NL;

impl Decode for IQ4_NL {
    const CHUNK_BYTES: usize = 8 * 18;

    type Head = Steps<8>;

    #[inline(always)]
    fn head(blocks: &[u8]) -> Steps<8> {
        let blocks = blocks.as_chunks::<18>().0;
        let mut factors = [[0; 2]; 8];
        for number in 0..blocks.len().min(8) {
            factors[number] = [blocks[number][0], blocks[number][1]];
        }
        Steps::new(halves(&factors), [0.0; 8], [-127, 113], 8)
    }

    #[inline(always)]
    fn numbers<R: Registers>(registers: R, blocks: &[u8], steps: &Steps<8>, to: &mut Chunk) {
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

/// Blocks of a factor, eight scales of six bits, and 256 numbers, 32 in the low and the high halves of sixteen bytes.
#[expect(non_camel_case_types, reason = "its name in llama.cpp")]
pub(super) struct IQ4_XS;

impl Decode for IQ4_XS {
    const CHUNK_BYTES: usize = 136;

    type Head = f32;

    #[inline(always)]
    fn head(blocks: &[u8]) -> f32 {
        half([blocks[0], blocks[1]])
    }

    #[inline(always)]
    fn numbers<R: Registers>(registers: R, blocks: &[u8], scale: &f32, to: &mut Chunk) {
        let block = part::<136>(blocks, 0);
        to.scale = *scale;
        let highs = u16::from_le_bytes([block[2], block[3]]);
        for group in 0..8 {
            let low = i16::from(block[4 + group / 2] >> (4 * (group % 2)) & 15);
            let scale = (low | ((highs >> (2 * group) & 3) << 4).cast_signed()) - 32;
            let [low, high] = nibbles(part(block, 8 + 16 * group));
            let (low, high) = (registers.table(&VALUES, low), registers.table(&VALUES, high));
            for at in 0..16 {
                to.groups[group][at] = i16::from(low[at]) * scale;
                to.groups[group][16 + at] = i16::from(high[at]) * scale;
            }
        }
    }
}
