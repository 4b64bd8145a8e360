//! Rotary position embedding: each pair of numbers of a head is rotated by an angle that grows with the position.

use std::io::{Read, Seek};

use crate::{
    EngineError,
    inference::{
        model_file::ModelFile,
        shape::{Rope, Shape},
        weights::optional_vector,
    },
};

/// Computes by how much each pair is rotated from one position to the next.
pub(crate) fn angles(rope: &Rope) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "both are small")]
    let angle = |pair: usize| rope.base.powf(-2.0 * pair as f32 / rope.rotated as f32) / rope.linear_scale;
    (0..rope.rotated / 2).map(angle).collect()
}

/// Computes [`angles`] with the factors that some files have for each pair.
pub(crate) fn scaled_angles<R: Read + Seek>(
    file: &mut ModelFile<R>,
    shape: &Shape,
) -> Result<Vec<f32>, EngineError> {
    let mut angles = angles(&shape.rope);
    let factors = match optional_vector(file, "rope_freqs.weight", angles.len())? {
        Some(factors) => Some(factors),
        // Phi 3 has one set for texts up to the length that it was first made for, and another for longer ones.
        None => optional_vector(file, &format!("rope_factors_{}.weight", shape.rope_factors), angles.len())?,
    };
    for (angle, factor) in angles.iter_mut().zip(factors.unwrap_or_default()) {
        *angle /= factor;
    }
    Ok(angles)
}

/// The sines and cosines for some positions.
pub(crate) struct RotaryTable {
    rotated: usize,
    halves: bool,
    /// Sine and cosine, by position and then by pair.
    rotations: Vec<(f32, f32)>,
}

impl RotaryTable {
    /// Computes the rotations of `count` positions from `position` on.
    pub(crate) fn new(rope: &Rope, angles: &[f32], position: usize, count: usize) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a context has fewer than 2^24 tokens")]
        let rotation = |position: usize, angle: &f32| {
            let (sine, cosine) = (position as f32 * angle).sin_cos();
            (sine * rope.magnitude, cosine * rope.magnitude)
        };
        let rotations = (position..position + count)
            .flat_map(|position| angles.iter().map(move |angle| rotation(position, angle)));
        Self { rotated: rope.rotated, halves: rope.halves, rotations: rotations.collect() }
    }

    /// Rotates the heads of each position.
    pub(crate) fn rotate(&self, vectors: &mut [f32], heads: usize, head_size: usize) {
        let pairs = self.rotated / 2;
        if pairs == 0 {
            return;
        }
        let (step, apart) = if self.halves { (1, pairs) } else { (2, 1) };
        let positions = vectors.chunks_exact_mut(heads * head_size);
        for (vectors, rotations) in positions.zip(self.rotations.chunks_exact(pairs)) {
            for vector in vectors.chunks_exact_mut(head_size) {
                for (pair, (sine, cosine)) in rotations.iter().enumerate() {
                    let (left, right) = (vector[pair * step], vector[pair * step + apart]);
                    vector[pair * step] = left * cosine - right * sine;
                    vector[pair * step + apart] = left * sine + right * cosine;
                }
            }
        }
    }
}
