//! `Q2_K` to `Q6_K`: blocks of 256 numbers, in groups with small whole scales of their own.

use super::{Decode, Groups, Packed, WholeGroups, WholeHalves, half_in, nibbles, part, steps::Steps};
use crate::inference::kernels::quantised::{
    chunk::Chunk,
    registers::{ByteRegisters, Registers},
};

macro_rules! format {
    ($name: ident, $bytes: literal, $factors: ty, $read: ident, $numbers: ident, $packed: ident) => {
        #[expect(non_camel_case_types, reason = "its name in llama.cpp")]
        pub(super) struct $name;

        impl Decode for $name {
            const CHUNK_BYTES: usize = $bytes;

            #[inline(always)]
            fn decode<R: Registers>(registers: R, blocks: &[u8], to: &mut Chunk) {
                $numbers(registers, part(blocks, 0), to);
            }
        }

        impl Packed for $name {
            type Factors = $factors;

            #[inline(always)]
            fn factors<R: Registers>(registers: R, blocks: &[u8]) -> $factors {
                $read(registers, part::<$bytes>(blocks, 0))
            }

            #[inline(always)]
            fn bytes<R: ByteRegisters>(registers: R, blocks: &[u8], number: usize) -> R::Bytes {
                $packed(registers, part(blocks, 0), number)
            }
        }
    };
}

format!(Q2_K, 84, WholeHalves, two_bit_factors, two_bits, two_bit_bytes);
format!(Q3_K, 110, WholeHalves, three_bit_factors, three_bits, three_bit_bytes);
format!(Q4_K, 144, WholeGroups, factors_and_offsets, four_bits, four_bit_bytes);
format!(Q5_K, 176, WholeGroups, factors_and_offsets, five_bits, five_bit_bytes);
format!(Q6_K, 210, WholeHalves, six_bit_factors, six_bits, six_bit_bytes);

/// Shifts each byte so that its bit `from` comes to the place `to`, and keeps the bits of `mask`.
#[inline(always)]
fn moved<R: ByteRegisters>(registers: R, bytes: R::Bytes, from: usize, to: usize, mask: u8) -> R::Bytes {
    match from < to {
        true => registers.left(bytes, to - from, mask),
        false => registers.right(bytes, from - to, mask),
    }
}

/// Sixteen scales of four bits below sixteen offsets of four bits; 64 bytes of four numbers each; two factors.
#[inline(always)]
fn two_bit_factors<R: Registers>(registers: R, block: &[u8; 84]) -> WholeHalves {
    let [mut factors, mut offsets] = [[0; 16]; 2];
    for group in 0..16 {
        factors[group] = (block[group] & 15).cast_signed();
        offsets[group] = (block[group] >> 4).cast_signed();
    }
    let (factor, offset) = (half_in(registers, part(block, 80)), -half_in(registers, part(block, 82)));
    WholeHalves { factors, offsets, factor, offset }
}

#[inline(always)]
fn two_bit_bytes<R: ByteRegisters>(registers: R, block: &[u8; 84], number: usize) -> R::Bytes {
    let packed = registers.load_bytes(part(block, 16 + 32 * (number / 4)));
    registers.right(packed, number % 4 * 2, 3)
}

#[inline(always)]
fn two_bits<R: Registers>(registers: R, block: &[u8; 84], to: &mut Chunk) {
    let [factors, offsets] = two_bit_factors(registers, block).groups();
    let steps = Steps::new(factors, offsets, [0, 3], 13);
    to.scale = steps.scale;
    for group in 0..16 {
        let (half, shift, side) = (group / 8, group % 8 / 2 * 2, 16 * (group % 2));
        let packed: &[u8; 16] = part(block, 16 + 32 * half + side);
        for at in 0..16 {
            to.groups[group / 2][side + at] = steps.whole(group, i16::from(packed[at] >> shift & 3) << 13);
        }
    }
}

/// Reads sixteen scales of six bits, from -32 to 31.
#[inline(always)]
fn three_bit_scales(block: &[u8; 110]) -> [i16; 16] {
    let mut scales = [0; 16];
    for group in 0..16 {
        let low = block[96 + group % 8] >> (4 * (group / 8)) & 15;
        let high = block[104 + group % 4] >> (2 * (group / 4)) & 3;
        scales[group] = i16::from(low | high << 4) - 32;
    }
    scales
}

#[inline(always)]
fn three_bit_factors<R: Registers>(registers: R, block: &[u8; 110]) -> WholeHalves {
    let (factor, scales) = (half_in(registers, part(block, 108)), three_bit_scales(block));
    let mut whole = [0; 16];
    for group in 0..16 {
        whole[group] = scales[group] as i8;
    }
    WholeHalves { factors: whole, offsets: whole, factor, offset: -4.0 * factor }
}

#[inline(always)]
fn three_bit_bytes<R: ByteRegisters>(registers: R, block: &[u8; 110], number: usize) -> R::Bytes {
    let packed = registers.load_bytes(part(block, 32 + 32 * (number / 4)));
    let third = moved(registers, registers.load_bytes(part(block, 0)), number, 2, 4);
    registers.either(registers.right(packed, number % 4 * 2, 3), third)
}

/// 32 bytes of high bits, 64 bytes of four pairs of low bits each, sixteen scales of six bits, and a factor.
#[inline(always)]
fn three_bits<R: Registers>(registers: R, block: &[u8; 110], to: &mut Chunk) {
    to.scale = half_in(registers, part(block, 108));
    let scales = three_bit_scales(block);
    for group in 0..16 {
        let (half, quarter, side) = (group / 8, group % 8 / 2, 16 * (group % 2));
        let (high, packed): (&[u8; 16], &[u8; 16]) = (part(block, side), part(block, 32 + 32 * half + side));
        for at in 0..16 {
            let number = packed[at] >> (2 * quarter) & 3 | (high[at] >> (4 * half + quarter) & 1) << 2;
            to.groups[group / 2][side + at] = (i16::from(number) - 4) * scales[group];
        }
    }
}

/// Reads eight factors and eight offsets: two numbers of half precision, each times eight numbers of six bits, which are
/// in twelve bytes.
#[inline(always)]
fn factors_and_offsets<R: Registers>(registers: R, block: &[u8]) -> WholeGroups {
    let (factor, offset) = (half_in(registers, part(block, 0)), -half_in(registers, part(block, 2)));
    WholeGroups { whole: registers.six_bits(part(block, 0)), factor, offset }
}

#[inline(always)]
fn four_bit_bytes<R: ByteRegisters>(registers: R, block: &[u8; 144], number: usize) -> R::Bytes {
    let packed = registers.load_bytes(part(block, 16 + 32 * (number / 2)));
    registers.right(packed, number % 2 * 4, 15)
}

/// The factors and offsets, and the numbers, of which 32 are in the low and 32 in the high halves of 32 bytes.
#[inline(always)]
fn four_bits<R: Registers>(registers: R, block: &[u8; 144], to: &mut Chunk) {
    let Groups { factors, offsets } = factors_and_offsets(registers, block).groups();
    let steps = Steps::new(factors, offsets, [0, 15], 11);
    to.scale = steps.scale;
    for pair in 0..4 {
        let [low, high] = nibbles::<32>(part(block, 16 + 32 * pair));
        for at in 0..32 {
            to.groups[2 * pair][at] = steps.whole(2 * pair, i16::from(low[at]) << 11);
            to.groups[2 * pair + 1][at] = steps.whole(2 * pair + 1, i16::from(high[at]) << 11);
        }
    }
}

#[inline(always)]
fn five_bit_bytes<R: ByteRegisters>(registers: R, block: &[u8; 176], number: usize) -> R::Bytes {
    let packed = registers.load_bytes(part(block, 48 + 32 * (number / 2)));
    let fifth = moved(registers, registers.load_bytes(part(block, 16)), number, 4, 16);
    registers.either(registers.right(packed, number % 2 * 4, 15), fifth)
}

/// As [`four_bits`], with 32 bytes of fifth bits before the others.
#[inline(always)]
fn five_bits<R: Registers>(registers: R, block: &[u8; 176], to: &mut Chunk) {
    let Groups { factors, offsets } = factors_and_offsets(registers, block).groups();
    let steps = &Steps::new(factors, offsets, [0, 31], 10);
    to.scale = steps.scale;
    let fifth: &[u8; 32] = part(block, 16);
    five_bit_pair::<0>(block, fifth, steps, to);
    five_bit_pair::<1>(block, fifth, steps, to);
    five_bit_pair::<2>(block, fifth, steps, to);
    five_bit_pair::<3>(block, fifth, steps, to);
}

/// Two groups that share 32 bytes. It is compiled for each, with shifts that are known.
#[inline(always)]
fn five_bit_pair<const PAIR: usize>(block: &[u8; 176], fifth: &[u8; 32], steps: &Steps<8>, to: &mut Chunk) {
    let [low, high] = nibbles::<32>(part(block, 48 + 32 * PAIR));
    for at in 0..32 {
        let bits = fifth[at] >> (2 * PAIR);
        let (low, high) = (low[at] | (bits & 1) << 4, high[at] | (bits & 2) << 3);
        to.groups[2 * PAIR][at] = steps.whole(2 * PAIR, i16::from(low) << 10);
        to.groups[2 * PAIR + 1][at] = steps.whole(2 * PAIR + 1, i16::from(high) << 10);
    }
}

#[inline(always)]
fn six_bit_factors<R: Registers>(registers: R, block: &[u8; 210]) -> WholeHalves {
    let (factor, scales) = (half_in(registers, part(block, 208)), part::<16>(block, 192));
    let mut whole = [0; 16];
    for group in 0..16 {
        whole[group] = scales[group].cast_signed();
    }
    WholeHalves { factors: whole, offsets: whole, factor, offset: -32.0 * factor }
}

#[inline(always)]
fn six_bit_bytes<R: ByteRegisters>(registers: R, block: &[u8; 210], number: usize) -> R::Bytes {
    let (half, quarter) = (number / 4, number % 4);
    let low = registers.load_bytes(part(block, 64 * half + 32 * (quarter % 2)));
    let high = registers.load_bytes(part(block, 128 + 32 * half));
    let high = moved(registers, high, 2 * quarter, 4, 48);
    registers.either(registers.right(low, quarter / 2 * 4, 15), high)
}

/// 128 bytes of the low four bits of two numbers each, 64 bytes of the high bits of four, sixteen scales of eight bits
/// with a sign, and a factor.
#[inline(always)]
fn six_bits<R: Registers>(registers: R, block: &[u8; 210], to: &mut Chunk) {
    to.scale = half_in(registers, part(block, 208));
    for half in 0..2 {
        six_bit_quarter::<0, 0>(block, half, to);
        six_bit_quarter::<1, 0>(block, half, to);
        six_bit_quarter::<2, 4>(block, half, to);
        six_bit_quarter::<3, 4>(block, half, to);
    }
}

/// A quarter of half a block, whose low bits are shifted by `SHIFT`. It is compiled for each, with shifts that are known.
#[inline(always)]
fn six_bit_quarter<const QUARTER: usize, const SHIFT: u32>(block: &[u8; 210], half: usize, to: &mut Chunk) {
    let (group, high_shift) = (4 * half + QUARTER, 2 * QUARTER);
    let low: &[u8; 32] = part(block, 64 * half + 32 * (QUARTER % 2));
    let high: &[u8; 32] = part(block, 128 + 32 * half);
    let mut numbers = [0; 32];
    for at in 0..32 {
        numbers[at] = low[at] >> SHIFT & 15 | (high[at] >> high_shift & 3) << 4;
    }
    let scales = [block[192 + 2 * group].cast_signed(), block[193 + 2 * group].cast_signed()];
    let to = &mut to.groups[group];
    for at in 0..16 {
        to[at] = (i16::from(numbers[at]) - 32) * i16::from(scales[0]);
        to[16 + at] = (i16::from(numbers[16 + at]) - 32) * i16::from(scales[1]);
    }
}
