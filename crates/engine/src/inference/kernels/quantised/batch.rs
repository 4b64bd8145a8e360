//! Vectors that are multiplied together: rounded, and in the order in which the registers want them.

use super::chunk::{Chunk, LENGTH};
use crate::inference::kernels::math::{LANES, Lanes, in_parallel, with_widest_simd};

/// Several vectors.
pub(super) struct Batch {
    pub count: usize,
    pub chunks: Vec<BatchChunk>,
}

/// The numbers of one chunk of all vectors.
#[derive(Default)]
pub(super) struct BatchChunk {
    /// Numbers of each vector.
    pub length: usize,
    /// By sixteen vectors. The last group is filled up with zeros.
    pub groups: Vec<Group>,
}

/// The same chunk of sixteen vectors, and their factors.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Group {
    /// Pairs of neighbouring numbers, each of the sixteen vectors in turn.
    pub pairs: [[[i16; 2 * LANES]; 16]; LENGTH / 32],
    pub scales: Lanes,
}

impl Batch {
    /// Takes vectors of `columns` numbers, one after the other.
    pub(super) fn new(vectors: &[f32], columns: usize) -> Self {
        let count = vectors.len() / columns;
        let mut chunks: Vec<BatchChunk> = Vec::new();
        chunks.resize_with(columns.div_ceil(LENGTH), BatchChunk::default);
        in_parallel(&mut chunks, 1, |number, chunk| {
            let first = number * LENGTH;
            let length = LENGTH.min(columns - first);
            let empty = Group { pairs: [[[0; 2 * LANES]; 16]; LENGTH / 32], scales: [0.0; LANES] };
            let mut groups = vec![empty; count.div_ceil(LANES)];
            with_widest_simd(
                #[inline(always)]
                || {
                    let mut rounded = Chunk::default();
                    for (at, vector) in vectors.chunks_exact(columns).enumerate() {
                        rounded.round_activations(&vector[first..first + length]);
                        let (group, lane) = (&mut groups[at / LANES], at % LANES);
                        group.scales[lane] = rounded.scale;
                        for (to, numbers) in group.pairs.iter_mut().zip(&rounded.groups) {
                            for pair in 0..16 {
                                to[pair][2 * lane] = numbers[2 * pair];
                                to[pair][2 * lane + 1] = numbers[2 * pair + 1];
                            }
                        }
                    }
                },
            );
            chunk[0] = BatchChunk { length, groups };
        });
        Self { count, chunks }
    }
}
