//! `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1` and `Q8_0`: blocks of 32 numbers.
//!
//! A block has a factor in half precision, those of the second kind an offset, and 32 numbers. Those of four and five bits
//! are in the low halves of sixteen bytes and then in the high ones; the fifth bits are in four bytes before them. Those
//! of the first kind mean numbers on both sides of zero.

use super::{Decode, Groups, Packed, Paired, half, nibbles, part, steps::Steps};
use crate::inference::kernels::quantised::{
    chunk::Chunk,
    registers::{ByteRegisters, Registers},
};

/// Blocks of 256 numbers.
const BLOCKS: usize = 8;

macro_rules! format {
    ($name: ident, $bytes: literal, $head: literal, $middle: literal, $ends: expr, $shift: literal, $numbers: ident, $factors: ident, $packed: ident) => {
        pub(super) struct $name;

        impl Decode for $name {
            const CHUNK_BYTES: usize = BLOCKS * $bytes;

            #[inline(always)]
            fn decode<R: Registers>(registers: R, blocks: &[u8], to: &mut Chunk) {
                let Groups { factors, offsets } = factors::<R, $bytes, $head>(registers, blocks, $middle);
                let steps = Steps::new(factors, offsets, $ends, $shift);
                to.scale = steps.scale;
                let blocks = blocks.as_chunks::<$bytes>().0;
                for number in 0..BLOCKS.min(blocks.len()) {
                    $numbers::<$bytes, $head>(&blocks[number], number, &steps, &mut to.groups[number]);
                }
            }
        }

        impl Packed for $name {
            const SIGNED: bool = $ends[0] < 0;
            const OFFSETS: bool = !Self::SIGNED;

            type Factors = $factors;

            #[inline(always)]
            fn factors<R: Registers>(registers: R, blocks: &[u8]) -> $factors {
                factors::<R, $bytes, $head>(registers, blocks, $middle).into()
            }

            #[inline(always)]
            fn bytes<R: ByteRegisters>(registers: R, blocks: &[u8], number: usize) -> R::Bytes {
                $packed::<R, $bytes, $head>(registers, blocks, number)
            }
        }
    };
}

format!(Q4_0, 18, 2, 8.0, [0, 15], 11, four_bits, Paired, four_bit_bytes);
format!(Q4_1, 20, 4, 8.0, [0, 15], 11, four_bits, Paired, four_bit_bytes);
format!(Q5_0, 22, 2, 16.0, [0, 31], 10, five_bits, Groups, five_bit_bytes);
format!(Q5_1, 24, 4, 16.0, [0, 31], 10, five_bits, Groups, five_bit_bytes);
format!(Q8_0, 34, 2, 0.0, [-128, 127], 8, eight_bits, Groups, eight_bit_bytes);

#[inline(always)]
fn four_bit_bytes<R: ByteRegisters, const SIZE: usize, const HEAD: usize>(
    registers: R,
    blocks: &[u8],
    number: usize,
) -> R::Bytes {
    let first = number / 2 * 2 * SIZE + HEAD;
    let both = registers.load_halves([part(blocks, first), part(blocks, first + SIZE)]);
    registers.right(both, number % 2 * 4, 15)
}

#[inline(always)]
fn five_bit_bytes<R: ByteRegisters, const SIZE: usize, const HEAD: usize>(
    registers: R,
    blocks: &[u8],
    number: usize,
) -> R::Bytes {
    let first = number * SIZE + HEAD;
    let fifth = registers.sixteens(*part(blocks, first));
    registers.either(registers.nibbles(part(blocks, first + 4)), fifth)
}

#[inline(always)]
fn eight_bit_bytes<R: ByteRegisters, const SIZE: usize, const HEAD: usize>(
    registers: R,
    blocks: &[u8],
    number: usize,
) -> R::Bytes {
    registers.load_bytes(part(blocks, number * SIZE + HEAD))
}

/// Reads the factors of blocks, and their offsets, which come next if the numbers begin after four bytes. Otherwise they
/// make `middle` stand for zero.
#[inline(always)]
fn factors<R: Registers, const SIZE: usize, const HEAD: usize>(
    registers: R,
    blocks: &[u8],
    middle: f32,
) -> Groups {
    let blocks = blocks.as_chunks::<SIZE>().0;
    let [mut factors, mut offsets] = [[0; BLOCKS]; 2];
    for number in 0..BLOCKS.min(blocks.len()) {
        let block = &blocks[number];
        factors[number] = u16::from_le_bytes([block[0], block[1]]);
        offsets[number] = u16::from_le_bytes([block[2], block[3]]);
    }
    let factors = registers.eight_halves(&factors);
    if HEAD > 2 {
        return Groups { factors, offsets: registers.eight_halves(&offsets) };
    }
    let mut offsets = [0.0; BLOCKS];
    for number in 0..BLOCKS {
        offsets[number] = -middle * factors[number];
    }
    Groups { factors, offsets }
}

#[inline(always)]
fn four_bits<const SIZE: usize, const HEAD: usize>(
    block: &[u8; SIZE],
    number: usize,
    steps: &Steps<BLOCKS>,
    to: &mut [i16; 32],
) {
    let [low, high] = nibbles::<16>(part(block, HEAD));
    for at in 0..16 {
        to[at] = steps.whole(number, i16::from(low[at]) << 11);
        to[16 + at] = steps.whole(number, i16::from(high[at]) << 11);
    }
}

/// Each bit of a byte as the fifth of a number.
const FIFTH_BITS: [u64; 256] = {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            all[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit + 4);
            bit += 1;
        }
        byte += 1;
    }
    all
};

#[inline(always)]
fn five_bits<const SIZE: usize, const HEAD: usize>(
    block: &[u8; SIZE],
    number: usize,
    steps: &Steps<BLOCKS>,
    to: &mut [i16; 32],
) {
    let halves = nibbles::<16>(part(block, HEAD + 4));
    for half in 0..2 {
        let mut fifth = [[0; 8]; 2];
        for byte in 0..2 {
            fifth[byte] = FIFTH_BITS[usize::from(block[HEAD + 2 * half + byte])].to_le_bytes();
        }
        for at in 0..16 {
            let bits = halves[half][at] | fifth[at / 8][at % 8];
            to[16 * half + at] = steps.whole(number, i16::from(bits) << 10);
        }
    }
}

#[inline(always)]
fn eight_bits<const SIZE: usize, const HEAD: usize>(
    block: &[u8; SIZE],
    number: usize,
    steps: &Steps<BLOCKS>,
    to: &mut [i16; 32],
) {
    let bytes: &[u8; 32] = part(block, HEAD);
    for at in 0..32 {
        to[at] = steps.whole(number, i16::from(bytes[at].cast_signed()) << 8);
    }
}

/// Reads the numbers of `Q8_0` exactly.
pub(super) fn eight_bit_numbers(bytes: &[u8]) -> Vec<f32> {
    let numbers = |block: &[u8; 34]| {
        let [low, high, numbers @ ..] = *block;
        let factor = half([low, high]);
        numbers.map(|byte| f32::from(byte.cast_signed()) * factor)
    };
    bytes.as_chunks().0.iter().flat_map(numbers).collect()
}
