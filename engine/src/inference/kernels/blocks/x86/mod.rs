//! Products of one vector with a quantised matrix, in the registers of AVX2.

mod q4_k;
mod q6_k;
mod q8_0;

use std::arch::x86_64::__m256;

use pulp::x86::V3;

use super::Blocks;
use crate::inference::kernels::math::{ROUND, from_half, in_parallel, with_widest_simd};

/// Numbers of a vector that share one scale.
const BLOCK_LENGTH: usize = 256;
/// Chunks of a matrix per core. A core that is held up leaves its remaining chunks to the others.
const CHUNKS_PER_CORE: usize = 8;

/// Bytes of [`BLOCK_LENGTH`] numbers.
const fn bytes(blocks: Blocks) -> usize {
    match blocks {
        Blocks::Q4K => q4_k::BYTES,
        Blocks::Q6K => q6_k::BYTES,
        Blocks::Q8_0 => q8_0::BYTES,
    }
}

/// See [`Blocks::product`].
pub(super) fn product(blocks: Blocks, matrix: &[u8], rows: usize, vector: &[f32]) -> Option<Vec<f32>> {
    let simd = V3::try_new()?;
    let vector = quantise(vector);
    let size = vector.len() * bytes(blocks);
    let mut out = vec![0.0; rows];
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let chunk = rows.div_ceil(cores * CHUNKS_PER_CORE).max(1);
    in_parallel(&mut out, chunk, |index, out| {
        let rows = &matrix[index * chunk * size..][..out.len() * size];
        simd.vectorize(Rows { simd, blocks, rows, vector: &vector, out });
    });
    Some(out)
}

/// Numbers of a vector, quantised to eight bits each.
struct ActivationBlock {
    numbers: [i8; BLOCK_LENGTH],
    /// The factor of each number.
    scale: f32,
    /// The sum of each 32 numbers, before they were quantised.
    sums: [f32; BLOCK_LENGTH / 32],
    /// The sum of each 16 numbers, likewise.
    half_sums: [f32; BLOCK_LENGTH / 16],
}

impl ActivationBlock {
    #[inline(always)]
    fn new(from: &[f32; BLOCK_LENGTH]) -> Self {
        let most = from.iter().fold(0.0f32, |most, number| most.max(number.abs()));
        let (scale, steps) = if most > 0.0 { (most / 127.0, 127.0 / most) } else { (0.0, 0.0) };
        let mut numbers = [0; BLOCK_LENGTH];
        for (to, number) in numbers.iter_mut().zip(from) {
            #[expect(clippy::cast_possible_truncation, reason = "it is no more than 127")]
            let whole = (number * steps + ROUND - ROUND) as i8;
            *to = whole;
        }
        let mut half_sums = [0.0; BLOCK_LENGTH / 16];
        for (sum, numbers) in half_sums.iter_mut().zip(numbers.as_chunks::<16>().0) {
            *sum = scale * f32::from(numbers.iter().map(|number| i16::from(*number)).sum::<i16>());
        }
        let sums = std::array::from_fn(|at| half_sums[2 * at] + half_sums[2 * at + 1]);
        Self { numbers, scale, sums, half_sums }
    }
}

fn quantise(vector: &[f32]) -> Vec<ActivationBlock> {
    let (blocks, rest) = vector.as_chunks::<BLOCK_LENGTH>();
    assert!(rest.is_empty(), "a vector of {} numbers", vector.len());
    with_widest_simd(
        #[inline(always)]
        || blocks.iter().map(ActivationBlock::new).collect(),
    )
}

/// Some rows of a matrix, to be multiplied on one core.
struct Rows<'a> {
    simd: V3,
    blocks: Blocks,
    rows: &'a [u8],
    vector: &'a [ActivationBlock],
    out: &'a mut [f32],
}

impl pulp::NullaryFnOnce for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let rows = self.rows.chunks_exact(self.vector.len() * bytes(self.blocks));
        for (row, out) in rows.zip(self.out) {
            *out = match self.blocks {
                Blocks::Q4K => q4_k::product(self.simd, row, self.vector),
                Blocks::Q6K => q6_k::product(self.simd, row, self.vector),
                Blocks::Q8_0 => q8_0::product(self.simd, row, self.vector),
            };
        }
    }
}

/// Reads a half-precision number.
#[inline(always)]
fn scale(bytes: [u8; 2]) -> f32 {
    from_half(u16::from_le_bytes(bytes))
}

/// Adds eight numbers.
#[inline(always)]
fn sum(numbers: __m256) -> f32 {
    let [a, b, c, d, e, f, g, h]: [f32; 8] = pulp::cast(numbers);
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
mod tests {
    use candle_core::{
        Device,
        quantized::{GgmlDType, QStorage, QTensor},
    };

    use super::{Blocks, bytes};

    /// Random bytes, with factors that are small numbers.
    fn matrix(blocks: Blocks, rows: usize, blocks_per_row: usize) -> Vec<u8> {
        let mut state = 7u32;
        let mut bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        })
        .take(rows * blocks_per_row * bytes(blocks))
        .collect();
        let (size, factors) = match blocks {
            Blocks::Q4K => (144, 0..4),
            Blocks::Q6K => (210, 208..210),
            Blocks::Q8_0 => (34, 0..2),
        };
        for block in bytes.chunks_exact_mut(size) {
            for factor in block[factors.clone()].chunks_exact_mut(2) {
                factor[1] = factor[1] & 0x83 | 0x2c;
            }
        }
        bytes
    }

    #[test]
    fn multiplies_what_the_blocks_stand_for() {
        for (blocks, kind) in
            [(Blocks::Q4K, GgmlDType::Q4K), (Blocks::Q6K, GgmlDType::Q6K), (Blocks::Q8_0, GgmlDType::Q8_0)]
        {
            for (rows, blocks_per_row) in [(0, 1), (1, 1), (3, 2), (16, 1), (70, 3)] {
                let columns = blocks_per_row * super::BLOCK_LENGTH;
                let bytes = matrix(blocks, rows, blocks_per_row);
                // Whole numbers of which the largest is 127 are the same in eight bits.
                let number =
                    |at: usize| if at % 256 == 9 { -127.0 } else { ((at * 7919) % 251) as f32 - 125.0 };
                let vector: Vec<f32> = (0..columns).map(number).collect();
                let Some(found) = blocks.product(&bytes, rows, &vector) else { return };
                assert_eq!(found.len(), rows);
                if rows == 0 {
                    continue;
                }
                let storage = QStorage::from_data(bytes.into(), &Device::Cpu, kind).unwrap();
                let tensor = QTensor::new(storage, (rows, columns)).unwrap();
                let plain = tensor.dequantize(&Device::Cpu).unwrap().to_vec2::<f32>().unwrap();
                for (row, found) in plain.iter().zip(&found) {
                    let products = row.iter().zip(&vector).map(|(left, right)| f64::from(left * right));
                    let (sum, size) = products
                        .fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()));
                    let apart = (f64::from(*found) - sum).abs() / size;
                    assert!(apart < 1e-6, "{blocks:?}, {rows} by {columns}: {found} for {sum}");
                }
            }
        }
    }

    #[test]
    fn a_vector_keeps_eight_bits() {
        let vector: Vec<f32> =
            (0..512u16).map(|at| (f32::from(at) * 0.7).sin() * f32::from(at / 256)).collect();
        let blocks = super::quantise(&vector);
        assert!(blocks[0].numbers.iter().all(|number| *number == 0) && blocks[0].scale == 0.0);
        for (number, expected) in blocks[1].numbers.iter().zip(&vector[256..]) {
            assert!((f32::from(*number) * blocks[1].scale - expected).abs() <= 0.501 * blocks[1].scale);
        }
    }
}
