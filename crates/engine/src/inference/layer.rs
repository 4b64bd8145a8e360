//! One layer of the network: attention or a convolution, then a gated feed-forward.

use std::io::{Read, Seek};

use half::f16;

use crate::{
    EngineError,
    inference::{
        kernels::{Attention, KvCache, add_bias, gelu_mul, rms_norm, silu_mul, to_half},
        model_file::ModelFile,
        rotary::RotaryTable,
        shape::{Activation, Shape},
        weights::{Matrix, Stack, optional_vector, vector},
    },
};

pub(crate) struct Layer {
    norm: Vec<f32>,
    mixer: Mixer,
    mixer_norm: Option<Vec<f32>>,
    forward_norm: Vec<f32>,
    gate_up: Stack,
    down: Matrix,
    down_norm: Option<Vec<f32>>,
}

/// The part of a layer that looks at other positions.
enum Mixer {
    Attention(AttentionWeights),
    Convolution { input: Stack, kernel: Vec<f32>, output: Matrix },
}

struct AttentionWeights {
    /// Queries, keys and values. Some models have one matrix for all three.
    input: Stack,
    bias: Option<Vec<f32>>,
    query_norm: Option<Vec<f32>>,
    key_norm: Option<Vec<f32>>,
    output: Matrix,
}

/// The positions that a step computes.
pub(crate) struct Span<'a> {
    /// The first of them.
    pub position: usize,
    pub count: usize,
    /// The number of positions that each sees, its own included.
    pub window: usize,
    pub rotary: &'a RotaryTable,
}

impl Layer {
    pub(crate) fn read<R: Read + Seek>(
        file: &mut ModelFile<R>,
        shape: &Shape,
        number: usize,
    ) -> Result<Self, EngineError> {
        let name = |part: &str| format!("blk.{number}.{part}");
        let (width, small) = (shape.width, shape.small);
        let mixer = Mixer::read(file, shape, number)?;
        let (gate, up) = (name("ffn_gate.weight"), name("ffn_up.weight"));
        let rows = file.tensor(&up).and_then(|info| info.dims.first().copied());
        let both = [(gate.as_str(), rows), (up.as_str(), rows)];
        // Some models have both in one matrix.
        let parts = if file.tensor(&gate).is_some() { &both } else { &both[1..] };
        let gate_up = Stack::read(file, small, parts, width)?;
        let inner = gate_up.rows() / 2;
        Ok(Self {
            norm: vector(file, &name("attn_norm.weight"), width)?,
            mixer,
            mixer_norm: optional_vector(file, &name("post_attention_norm.weight"), width)?,
            forward_norm: vector(file, &name("ffn_norm.weight"), width)?,
            gate_up,
            down: Matrix::read(file, small, &name("ffn_down.weight"), Some(width), inner)?,
            down_norm: optional_vector(file, &name("post_ffw_norm.weight"), width)?,
        })
    }

    pub(crate) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let (input, output) = match &self.mixer {
            Mixer::Attention(AttentionWeights { input, output, .. })
            | Mixer::Convolution { input, output, .. } => (input, output),
        };
        input.matrices().iter().chain(self.gate_up.matrices()).chain([output, &self.down])
    }

    /// Computes what the mixer adds to `state`.
    pub(crate) fn mix(&self, shape: &Shape, state: &[f32], cache: &mut KvCache, span: &Span<'_>) -> Vec<f32> {
        let mut input = state.to_vec();
        rms_norm(&mut input, &self.norm, shape.epsilon);
        let mut mixed = match &self.mixer {
            Mixer::Attention(weights) => weights.apply(shape, &input, cache, span),
            Mixer::Convolution { input: matrix, kernel, output } => {
                let parts = matrix.apply(&input, span.count, [shape.width; 3]);
                output.apply(&convolve(&parts, kernel, cache, span, shape), span.count)
            }
        };
        if let Some(norm) = &self.mixer_norm {
            rms_norm(&mut mixed, norm, shape.epsilon);
        }
        mixed
    }

    /// Computes what the feed-forward adds to the `state` of `count` positions.
    pub(crate) fn feed_forward(&self, shape: &Shape, state: &[f32], count: usize) -> Vec<f32> {
        let mut input = state.to_vec();
        rms_norm(&mut input, &self.forward_norm, shape.epsilon);
        let inner = self.gate_up.rows() / 2;
        let [mut gate, up] = self.gate_up.apply(&input, count, [inner, inner]);
        match shape.activation {
            Activation::Silu => silu_mul(&mut gate, &up),
            Activation::Gelu => gelu_mul(&mut gate, &up),
        }
        let mut output = self.down.apply(&gate, count);
        if let Some(norm) = &self.down_norm {
            rms_norm(&mut output, norm, shape.epsilon);
        }
        output
    }
}

impl Mixer {
    fn read<R: Read + Seek>(
        file: &mut ModelFile<R>,
        shape: &Shape,
        number: usize,
    ) -> Result<Self, EngineError> {
        if shape.kv_heads[number] > 0 {
            return AttentionWeights::read(file, shape, number).map(Self::Attention);
        }
        let name = |part: &str| format!("blk.{number}.shortconv.{part}.weight");
        let (width, small) = (shape.width, shape.small);
        Ok(Self::Convolution {
            kernel: vector(file, &name("conv"), width * shape.convolution)?,
            input: Stack::read(file, small, &[(&name("in_proj"), Some(3 * width))], width)?,
            output: Matrix::read(file, small, &name("out_proj"), Some(width), width)?,
        })
    }
}

impl AttentionWeights {
    fn read<R: Read + Seek>(
        file: &mut ModelFile<R>,
        shape: &Shape,
        number: usize,
    ) -> Result<Self, EngineError> {
        let name = |part: &str| format!("blk.{number}.{part}");
        let (queries, kv) = (shape.heads * shape.head_size, shape.kv_heads[number] * shape.head_size);
        let mut parts = vec![("attn_q", queries), ("attn_k", kv), ("attn_v", kv)];
        if file.tensor(&name("attn_qkv.weight")).is_some() {
            parts = vec![("attn_qkv", queries + 2 * kv)];
        }
        let (mut weights, mut bias, mut has_bias) = (Vec::new(), Vec::new(), false);
        for (part, rows) in parts {
            weights.push((name(&format!("{part}.weight")), Some(rows)));
            let found = optional_vector(file, &name(&format!("{part}.bias")), rows)?;
            has_bias |= found.is_some();
            bias.extend(found.unwrap_or_else(|| vec![0.0; rows]));
        }
        let weights: Vec<_> = weights.iter().map(|(name, rows)| (name.as_str(), *rows)).collect();
        let (width, small) = (shape.width, shape.small);
        Ok(Self {
            input: Stack::read(file, small, &weights, width)?,
            bias: has_bias.then_some(bias),
            query_norm: optional_vector(file, &name("attn_q_norm.weight"), shape.head_size)?,
            key_norm: optional_vector(file, &name("attn_k_norm.weight"), shape.head_size)?,
            output: Matrix::read(file, small, &name("attn_output.weight"), Some(width), queries)?,
        })
    }

    fn apply(&self, shape: &Shape, input: &[f32], cache: &mut KvCache, span: &Span<'_>) -> Vec<f32> {
        let (kv_heads, head_size) = (cache.heads(), shape.head_size);
        let (query_size, kv_size) = (shape.heads * head_size, kv_heads * head_size);
        let [mut queries, mut keys, mut values] =
            self.input.apply(input, span.count, [query_size, kv_size, kv_size]);
        if let Some(bias) = &self.bias {
            add_bias(&mut queries, &bias[..query_size]);
            add_bias(&mut keys, &bias[query_size..query_size + kv_size]);
            add_bias(&mut values, &bias[query_size + kv_size..]);
        }
        for (vectors, norm) in [(&mut queries, &self.query_norm), (&mut keys, &self.key_norm)] {
            if let Some(norm) = norm {
                rms_norm(vectors, norm, shape.epsilon);
            }
        }
        span.rotary.rotate(&mut queries, shape.heads, head_size);
        span.rotary.rotate(&mut keys, kv_heads, head_size);
        cache.append(&keys, &values, span.position, head_size);
        let attention = Attention {
            head_size,
            heads: shape.heads,
            kv_heads,
            position: span.position,
            window: span.window,
            scale: shape.attention_scale,
            single_threaded: shape.small,
            cache,
        };
        self.output.apply(&attention.apply(&queries, span.count), span.count)
    }
}

/// A gated convolution over the last few positions, number by number.
fn convolve(
    [before, after, inner]: &[Vec<f32>; 3],
    kernel: &[f32],
    cache: &mut KvCache,
    span: &Span<'_>,
    shape: &Shape,
) -> Vec<f32> {
    let (width, length, position) = (shape.width, shape.convolution, span.position);
    cache.inputs.resize(position * width, 0);
    cache.inputs.extend(before.iter().zip(inner).map(|(left, right)| to_half(left * right)));
    let mut out = vec![0.0; span.count * width];
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        for tap in 0..length {
            // The last tap is the position itself.
            let Some(from) = (position + row + tap + 1).checked_sub(length) else { continue };
            let inputs = &cache.inputs[from * width..][..width];
            for number in 0..width {
                out[number] += kernel[number * length + tap] * f16::from_bits(inputs[number]).to_f32();
            }
        }
        for (out, after) in out.iter_mut().zip(&after[row * width..]) {
            *out *= after;
        }
    }
    out
}
