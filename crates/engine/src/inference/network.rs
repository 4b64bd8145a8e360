//! The network: computes from tokens what may come next.
//!
//! One kind of layer serves all architectures, because they differ little: in which vectors are normalised, in which
//! numbers are rotated, and in what some layers have in place of attention.

use std::io::{Read, Seek};

use crate::{
    DecodeError, EngineError, Limits,
    inference::{
        kernels::{add, on_threads, rms_norm},
        layer::{Layer, Span},
        model_file::{ModelFile, broken},
        rotary::{self, RotaryTable},
        sequence_cache::SequenceCache,
        shape::Shape,
        weights::{Matrix, vector},
    },
};

pub(crate) struct Network {
    pub shape: Shape,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// Missing in models that use the embedding for the output as well.
    output: Option<Matrix>,
    /// The angles of the rotary embedding, for layers that see everything and for layers that see a window.
    angles: Vec<f32>,
    local_angles: Vec<f32>,
}

impl Network {
    pub(crate) fn read<R: Read + Seek>(
        file: &mut ModelFile<R>,
        tokens: usize,
        limits: &Limits,
    ) -> Result<Self, EngineError> {
        let shape = Shape::read(file, limits)?;
        let small = shape.small;
        let embedding = Matrix::read(file, small, "token_embd.weight", None, shape.width)?;
        if embedding.rows() < tokens {
            return Err(broken("its vocabulary has more tokens than it has embeddings"));
        }
        let mut layers = Vec::new();
        for number in 0..shape.layers {
            layers.push(Layer::read(file, &shape, number)?);
        }
        let output = match file.tensor("output.weight") {
            Some(_) => Some(Matrix::read(file, small, "output.weight", Some(embedding.rows()), shape.width)?),
            None => None,
        };
        let name =
            if file.tensor("output_norm.weight").is_some() { "output_norm" } else { "token_embd_norm" };
        let norm = vector(file, &format!("{name}.weight"), shape.width)?;
        let angles = rotary::scaled_angles(file, &shape)?;
        let local_angles = shape.local.as_ref().map_or_else(Vec::new, |local| rotary::angles(&local.rope));
        Ok(Self { shape, embedding, layers, norm, output, angles, local_angles })
    }

    /// Bytes of all matrices.
    pub(crate) fn bytes(&self) -> usize {
        let layers = self.layers.iter().flat_map(Layer::matrices);
        layers.chain(&self.output).chain([&self.embedding]).map(Matrix::bytes).sum()
    }

    /// The number of logits after one position: at least as many as the vocabulary has tokens.
    pub(crate) fn outputs(&self) -> usize {
        self.output.as_ref().unwrap_or(&self.embedding).rows()
    }

    /// Reads `tokens` after those in `cache`. Returns the logits after each of the last `wanted` of them, one position after
    /// the other. A few tokens are read as if one after the other, with the same result to the last bit: up to `kernels::FEW`.
    ///
    /// `stop` is called before each layer. If it returns true, the error is [`DecodeError::Cancelled`] and the cache
    /// holds what it held before.
    pub(crate) fn read_tokens(
        &self,
        cache: &mut SequenceCache,
        tokens: &[u32],
        wanted: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, DecodeError> {
        let shape = &self.shape;
        let (position, mut count) = (cache.tokens.len(), tokens.len());
        let mut state = self.embedding.lookup(tokens);
        if shape.embedding_scale != 1.0 {
            state.iter_mut().for_each(|number| *number *= shape.embedding_scale);
        }
        let rotary = RotaryTable::new(&shape.rope, &self.angles, position, count);
        let local_rotary = shape
            .local
            .as_ref()
            .map(|local| RotaryTable::new(&local.rope, &self.local_angles, position, count));
        for (number, (layer, layer_cache)) in self.layers.iter().zip(&mut cache.layers).enumerate() {
            if stop() {
                return Err(DecodeError::Cancelled);
            }
            let (rotary, window) = match (&local_rotary, &shape.local) {
                (Some(rotary), Some(local)) if shape.is_local(number) => (rotary, local.window),
                _ => (&rotary, usize::MAX),
            };
            let span = Span { position, count, window, rotary };
            let mut mixed = together(shape.small, || layer.mix(shape, &state, layer_cache, &span));
            if number + 1 == shape.layers {
                if wanted == 0 {
                    break;
                }
                // Positions before those that are wanted have done their part.
                let rest = (count - wanted) * shape.width;
                state.drain(..rest);
                mixed.drain(..rest);
                count = wanted;
            }
            add(&mut state, &mixed);
            let forward = together(shape.small, || layer.feed_forward(shape, &state, count));
            add(&mut state, &forward);
        }
        cache.tokens.extend_from_slice(tokens);
        if wanted == 0 {
            return Ok(Vec::new());
        }
        rms_norm(&mut state, &self.norm, shape.epsilon);
        Ok(self.output.as_ref().unwrap_or(&self.embedding).apply(&state, count))
    }
}

/// Runs parts of a layer on one of the threads of large models, so that each need not be handed over to them.
fn together<T: Send>(small: bool, work: impl FnOnce() -> T + Send) -> T {
    if small { work() } else { on_threads(work) }
}
