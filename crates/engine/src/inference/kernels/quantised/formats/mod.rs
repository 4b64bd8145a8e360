//! The formats of quantised numbers in GGUF files, and how each is decoded.
//!
//! Source of all layouts: `ggml-common.h` and `dequantize_row_*` in llama.cpp.

mod factors;
mod floats;
mod iq4;
mod k_quants;
mod legacy;
mod packed;
mod steps;

use super::{
    chunk::{Chunk, LENGTH},
    registers::{Portable, Registers},
};
use crate::inference::kernels::math::from_half;

pub(super) use factors::Factors;
use factors::{Groups, Paired, WholeGroups, WholeHalves};
pub(super) use floats::Plain;
pub(super) use packed::{Packed, PackedJob};

/// A format of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "their names in llama.cpp")]
pub(crate) enum Format {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    IQ4_NL,
    IQ4_XS,
}

/// Decodes one format.
///
/// Loops in it are loops: what the standard library has for arrays is not always inlined, and what is not inlined is
/// compiled for the oldest CPU.
pub(super) trait Decode: Send {
    /// Bytes of 256 numbers.
    const CHUNK_BYTES: usize;

    /// Decodes whole blocks, of at most 256 numbers. What is in `to` behind them is not a number of theirs.
    ///
    /// Must be marked `#[inline(always)]`, so that it is compiled for these registers.
    fn decode<R: Registers>(registers: R, blocks: &[u8], to: &mut Chunk);
}

/// Something to be compiled for each format.
pub(super) trait Job {
    type Output;

    fn run<F: Decode>(self) -> Self::Output;
}

/// Runs a job for the packed format that a format is. The arms for plain numbers are given.
macro_rules! with_format {
    ($format:expr, $job:ident, $($plain:pat => $run:expr,)+) => {
        match $format {
            $($plain => $run,)+
            Self::Q4_0 => $job.run::<legacy::Q4_0>(),
            Self::Q4_1 => $job.run::<legacy::Q4_1>(),
            Self::Q5_0 => $job.run::<legacy::Q5_0>(),
            Self::Q5_1 => $job.run::<legacy::Q5_1>(),
            Self::Q8_0 => $job.run::<legacy::Q8_0>(),
            Self::Q2_K => $job.run::<k_quants::Q2_K>(),
            Self::Q3_K => $job.run::<k_quants::Q3_K>(),
            Self::Q4_K => $job.run::<k_quants::Q4_K>(),
            Self::Q5_K => $job.run::<k_quants::Q5_K>(),
            Self::Q6_K => $job.run::<k_quants::Q6_K>(),
            Self::IQ4_NL => $job.run::<iq4::IQ4_NL>(),
            Self::IQ4_XS => $job.run::<iq4::IQ4_XS>(),
        }
    };
}

impl Format {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 15] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2_K,
        Self::Q3_K,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        Self::IQ4_NL,
        Self::IQ4_XS,
    ];

    /// Returns the format with this number in GGUF files. Source: `enum ggml_type`.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2_K,
            11 => Self::Q3_K,
            12 => Self::Q4_K,
            13 => Self::Q5_K,
            14 => Self::Q6_K,
            20 => Self::IQ4_NL,
            23 => Self::IQ4_XS,
            30 => Self::BF16,
            _ => return None,
        })
    }

    /// Numbers and bytes of a block.
    pub(crate) fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::BF16 => (1, 2),
            Self::Q4_0 | Self::IQ4_NL => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q2_K => (256, 84),
            Self::Q3_K => (256, 110),
            Self::Q4_K => (256, 144),
            Self::Q5_K => (256, 176),
            Self::Q6_K => (256, 210),
            Self::IQ4_XS => (256, 136),
        }
    }

    /// Bytes of a row of so many numbers, which must be whole blocks.
    pub(crate) fn row_bytes(self, columns: usize) -> usize {
        let (numbers, bytes) = self.block();
        columns / numbers * bytes
    }

    /// Returns the numbers of whole blocks: exactly for plain numbers and `Q8_0`, else rounded as they are for products.
    pub(crate) fn numbers(self, bytes: &[u8]) -> Vec<f32> {
        let (numbers, size) = self.block();
        match self {
            Self::F32 => floats::numbers(bytes, f32::from_le_bytes),
            Self::F16 => floats::numbers(bytes, half),
            Self::BF16 => floats::numbers(bytes, floats::brain),
            Self::Q8_0 => legacy::eight_bit_numbers(bytes),
            _ => {
                let mut found = Vec::new();
                self.with(Decoded { from: bytes, columns: bytes.len() / size * numbers, to: &mut found });
                found
            }
        }
    }

    pub(super) fn with<J: Job>(self, job: J) -> J::Output {
        with_format!(self, job,
            Self::F32 => job.run::<floats::F32>(),
            Self::F16 => job.run::<floats::F16>(),
            Self::BF16 => job.run::<floats::BF16>(),
        )
    }

    /// Runs a job for a format that is not plain numbers, for which there is nothing to do.
    pub(super) fn with_packed<J: PackedJob>(self, job: J) {
        with_format!(self, job, Self::F32 | Self::F16 | Self::BF16 => {},);
    }

    /// Returns the kind of plain numbers that this format is, if it is one.
    pub(super) fn plain(self) -> Option<Plain> {
        match self {
            Self::F32 => Some(Plain::F32),
            Self::F16 => Some(Plain::F16),
            Self::BF16 => Some(Plain::BF16),
            _ => None,
        }
    }
}

/// Appends the numbers that some blocks stand for.
struct Decoded<'a> {
    from: &'a [u8],
    columns: usize,
    to: &'a mut Vec<f32>,
}

impl Job for Decoded<'_> {
    type Output = ();

    fn run<F: Decode>(self) {
        let mut chunk = Chunk::default();
        let mut left = self.columns;
        for blocks in self.from.chunks(F::CHUNK_BYTES) {
            F::decode(Portable, blocks, &mut chunk);
            let numbers = &chunk.groups.as_flattened()[..left.min(LENGTH)];
            self.to.extend(numbers.iter().map(|number| f32::from(*number) * chunk.scale));
            left -= numbers.len();
        }
    }
}

/// Reads one half-precision number with these registers.
#[inline(always)]
fn half_in<R: Registers>(registers: R, &bytes: &[u8; 2]) -> f32 {
    registers.half(u16::from_le_bytes(bytes))
}

/// Reads one half-precision number.
#[inline(always)]
fn half(bytes: [u8; 2]) -> f32 {
    from_half(u16::from_le_bytes(bytes))
}

/// Takes bytes that are there.
#[inline(always)]
fn part<const N: usize>(bytes: &[u8], first: usize) -> &[u8; N] {
    bytes[first..].first_chunk().expect("a block has them")
}

/// Takes the numbers in the low and in the high halves of bytes.
#[inline(always)]
fn nibbles<const N: usize>(packed: &[u8; N]) -> [[u8; N]; 2] {
    let [mut low, mut high] = [[0; N]; 2];
    for at in 0..N {
        low[at] = packed[at] & 15;
        high[at] = packed[at] >> 4;
    }
    [low, high]
}
