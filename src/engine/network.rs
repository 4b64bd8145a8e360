//! The network: from tokens to what may come next.
//!
//! One block serves all architectures, because they differ little: whether heads are normalised, whether a
//! layer's output is, which numbers a rope turns, and what stands for attention in some layers.

use std::io::{Read, Seek};

use kontekst_kernels::{
    Attention, Memory, add, add_to_each, gelu_times, half, normalise, remember, silu_times,
};

use crate::engine::{
    EngineError, Limits,
    cache::Cache,
    gguf::{Gguf, broken},
    shape::{Activation, Rope, Shape},
    weights::{Matrix, Stack, optional, vector},
};

pub struct Network {
    pub shape: Shape,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// Missing where the embedding serves.
    output: Option<Matrix>,
    /// What the angles of each pair are multiplied by, by kind of layer.
    angles: Vec<f32>,
    local_angles: Vec<f32>,
}

struct Layer {
    norm: Vec<f32>,
    mixer: Mixer,
    mixer_norm: Option<Vec<f32>>,
    forward_norm: Vec<f32>,
    gate_up: Stack,
    down: Matrix,
    down_norm: Option<Vec<f32>>,
}

/// How a layer looks at other positions.
enum Mixer {
    Attention {
        /// Queries, keys and values; one matrix for all in some models.
        input: Stack,
        bias: Option<Vec<f32>>,
        query_norm: Option<Vec<f32>>,
        key_norm: Option<Vec<f32>>,
        output: Matrix,
    },
    Convolution {
        input: Stack,
        kernel: Vec<f32>,
        output: Matrix,
    },
}

/// Reading was stopped before it was done.
pub struct Stopped;

impl Network {
    pub fn read<R: Read + Seek>(
        gguf: &mut Gguf<R>,
        tokens: usize,
        limits: &Limits,
    ) -> Result<Self, EngineError> {
        let shape = Shape::read(gguf, limits)?;
        let small = shape.small;
        let embedding = Matrix::read(gguf, small, "token_embd.weight", None, shape.width)?;
        if embedding.rows < tokens {
            return Err(broken("its vocabulary has more tokens than it has embeddings"));
        }
        let mut layers = Vec::new();
        for number in 0..shape.layers {
            layers.push(Layer::read(gguf, &shape, number)?);
        }
        let output = match gguf.tensor("output.weight") {
            Some(_) => Some(Matrix::read(gguf, small, "output.weight", Some(embedding.rows), shape.width)?),
            None => None,
        };
        let name =
            if gguf.tensor("output_norm.weight").is_some() { "output_norm" } else { "token_embd_norm" };
        let norm = vector(gguf, &format!("{name}.weight"), shape.width)?;
        let angles = angles(gguf, &shape, &shape.rope)?;
        let local_angles = match &shape.local {
            Some(local) => plain_angles(&local.rope),
            None => Vec::new(),
        };
        Ok(Self { shape, embedding, layers, norm, output, angles, local_angles })
    }

    /// Bytes of all matrices.
    pub fn bytes(&self) -> usize {
        let layers = self.layers.iter().flat_map(Layer::matrices);
        layers.chain(&self.output).chain([&self.embedding]).map(|matrix| matrix.bytes).sum()
    }

    /// Reads `tokens` after those in `cache`, and says how likely each token is to come next if `wants` to know.
    ///
    /// `stop` is asked before each layer; after it said so, the cache holds what it held before.
    pub fn read_tokens(
        &self,
        cache: &mut Cache,
        tokens: &[u32],
        wants: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Result<Vec<f32>, Stopped>, EngineError> {
        let (position, shape) = (cache.tokens.len(), &self.shape);
        let mut count = tokens.len();
        let mut state = self.embedding.lookup(tokens)?;
        if shape.embedding != 1.0 {
            state.iter_mut().for_each(|number| *number *= shape.embedding);
        }
        let turns = Turns::new(&shape.rope, &self.angles, position, count);
        let local =
            shape.local.as_ref().map(|local| Turns::new(&local.rope, &self.local_angles, position, count));
        for (number, (layer, memory)) in self.layers.iter().zip(&mut cache.layers).enumerate() {
            if stop() {
                return Ok(Err(Stopped));
            }
            let (turns, window) = match (&local, &shape.local) {
                (Some(turns), Some(local)) if shape.is_local(number) => (turns, local.window),
                _ => (&turns, usize::MAX),
            };
            let mut input = state.clone();
            normalise(&mut input, &layer.norm, shape.epsilon);
            let mut mixed = layer.mix(shape, &input, memory, turns, (position, count, window))?;
            if number + 1 == shape.layers {
                // Only the last position says what comes next; the others have done their part.
                let rest = (count - 1) * shape.width;
                state.drain(..rest);
                mixed.drain(..rest);
                count = 1;
            }
            if let Some(norm) = &layer.mixer_norm {
                normalise(&mut mixed, norm, shape.epsilon);
            }
            add(&mut state, &mixed);
            if number + 1 == shape.layers && !wants {
                break;
            }
            let mut forward = layer.forward(shape, &state, count)?;
            if let Some(norm) = &layer.down_norm {
                normalise(&mut forward, norm, shape.epsilon);
            }
            add(&mut state, &forward);
        }
        cache.tokens.extend_from_slice(tokens);
        if !wants {
            return Ok(Ok(Vec::new()));
        }
        normalise(&mut state, &self.norm, shape.epsilon);
        Ok(Ok(self.output.as_ref().unwrap_or(&self.embedding).apply(&state, 1)?))
    }
}

impl Layer {
    fn read<R: Read + Seek>(gguf: &mut Gguf<R>, shape: &Shape, number: usize) -> Result<Self, EngineError> {
        let name = |part: &str| format!("blk.{number}.{part}");
        let (width, small, kv) = (shape.width, shape.small, shape.kv_heads[number] * shape.head);
        let queries = shape.heads * shape.head;
        let mixer = if kv == 0 {
            let kernel = vector(gguf, &name("shortconv.conv.weight"), width * shape.convolution)?;
            Mixer::Convolution {
                input: Stack::read(
                    gguf,
                    small,
                    &[(&name("shortconv.in_proj.weight"), Some(3 * width))],
                    width,
                )?,
                kernel,
                output: Matrix::read(gguf, small, &name("shortconv.out_proj.weight"), Some(width), width)?,
            }
        } else {
            let mut parts = vec![("attn_q", queries), ("attn_k", kv), ("attn_v", kv)];
            if gguf.tensor(&name("attn_qkv.weight")).is_some() {
                parts = vec![("attn_qkv", queries + 2 * kv)];
            }
            let (mut weights, mut bias, mut biased) = (Vec::new(), Vec::new(), false);
            for (part, rows) in parts {
                weights.push((name(&format!("{part}.weight")), Some(rows)));
                let found = optional(gguf, &name(&format!("{part}.bias")), rows)?;
                biased |= found.is_some();
                bias.extend(found.unwrap_or_else(|| vec![0.0; rows]));
            }
            let weights: Vec<_> = weights.iter().map(|(name, rows)| (name.as_str(), *rows)).collect();
            let input = Stack::read(gguf, small, &weights, width)?;
            let bias = biased.then_some(bias);
            Mixer::Attention {
                input,
                bias,
                query_norm: optional(gguf, &name("attn_q_norm.weight"), shape.head)?,
                key_norm: optional(gguf, &name("attn_k_norm.weight"), shape.head)?,
                output: Matrix::read(gguf, small, &name("attn_output.weight"), Some(width), queries)?,
            }
        };
        let (gate, up) = (name("ffn_gate.weight"), name("ffn_up.weight"));
        let rows = gguf.tensor(&up).and_then(|info| info.dims.first().copied());
        let both = [(gate.as_str(), rows), (up.as_str(), rows)];
        // Some models have both in one.
        let parts = if gguf.tensor(&gate).is_some() { &both } else { &both[1..] };
        let gate_up = Stack::read(gguf, small, parts, width)?;
        let inner = gate_up.rows() / 2;
        Ok(Self {
            norm: vector(gguf, &name("attn_norm.weight"), width)?,
            mixer,
            mixer_norm: optional(gguf, &name("post_attention_norm.weight"), width)?,
            forward_norm: vector(gguf, &name("ffn_norm.weight"), width)?,
            gate_up,
            down: Matrix::read(gguf, small, &name("ffn_down.weight"), Some(width), inner)?,
            down_norm: optional(gguf, &name("post_ffw_norm.weight"), width)?,
        })
    }

    fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let (Mixer::Attention { input, output, .. } | Mixer::Convolution { input, output, .. }) = &self.mixer;
        input.matrices().iter().chain(self.gate_up.matrices()).chain([output, &self.down])
    }

    fn mix(
        &self,
        shape: &Shape,
        input: &[f32],
        memory: &mut Memory,
        turns: &Turns,
        (position, count, window): (usize, usize, usize),
    ) -> Result<Vec<f32>, EngineError> {
        let (parts, bias, query_norm, key_norm, output) = match &self.mixer {
            Mixer::Attention { input, bias, query_norm, key_norm, output } => {
                (input, bias, query_norm, key_norm, output)
            }
            Mixer::Convolution { input: matrix, kernel, output } => {
                let parts = matrix.apply(input, count, [shape.width; 3])?;
                return output.apply(&convolve(&parts, kernel, memory, position, count, shape), count);
            }
        };
        let kv_heads = memory.heads();
        let (asked, kv) = (shape.heads * shape.head, kv_heads * shape.head);
        let [mut queries, mut keys, mut values] = parts.apply(input, count, [asked, kv, kv])?;
        if let Some(bias) = bias {
            add_to_each(&mut queries, &bias[..asked]);
            add_to_each(&mut keys, &bias[asked..asked + kv]);
            add_to_each(&mut values, &bias[asked + kv..]);
        }
        for (vectors, norm) in [(&mut queries, query_norm), (&mut keys, key_norm)] {
            if let Some(norm) = norm {
                normalise(vectors, norm, shape.epsilon);
            }
        }
        turns.turn(&mut queries, shape.heads, shape.head);
        turns.turn(&mut keys, kv_heads, shape.head);
        remember(memory, &keys, &values, position, count, shape.head);
        let attention = Attention {
            head: shape.head,
            heads: shape.heads,
            kv_heads,
            position,
            window,
            scale: shape.scale,
            alone: shape.small,
            memory,
        };
        output.apply(&attention.of(&queries, count), count)
    }

    fn forward(&self, shape: &Shape, state: &[f32], count: usize) -> Result<Vec<f32>, EngineError> {
        let mut input = state.to_vec();
        normalise(&mut input, &self.forward_norm, shape.epsilon);
        let inner = self.gate_up.rows() / 2;
        let [mut gate, up] = self.gate_up.apply(&input, count, [inner, inner])?;
        match shape.activation {
            Activation::Silu => silu_times(&mut gate, &up),
            Activation::Gelu => gelu_times(&mut gate, &up),
        }
        self.down.apply(&gate, count)
    }
}

/// A gated convolution over the last few positions, number by number.
fn convolve(
    [before, after, inner]: &[Vec<f32>; 3],
    kernel: &[f32],
    memory: &mut Memory,
    position: usize,
    count: usize,
    shape: &Shape,
) -> Vec<f32> {
    let (width, length) = (shape.width, shape.convolution);
    memory.inputs.resize(position * width, 0);
    memory.inputs.extend(before.iter().zip(inner).map(|(left, right)| half(left * right)));
    let mut out = vec![0.0; count * width];
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        for tap in 0..length {
            // The last tap is the position itself.
            let Some(from) = (position + row + tap + 1).checked_sub(length) else { continue };
            let inputs = &memory.inputs[from * width..][..width];
            for number in 0..width {
                out[number] += kernel[number * length + tap] * half::f16::from_bits(inputs[number]).to_f32();
            }
        }
        for (out, after) in out.iter_mut().zip(&after[row * width..]) {
            *out *= after;
        }
    }
    out
}

/// How far each pair turns from one position to the next.
fn plain_angles(rope: &Rope) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "both are small")]
    let angle = |pair: usize| rope.base.powf(-2.0 * pair as f32 / rope.turned as f32) / rope.stretch;
    (0..rope.turned / 2).map(angle).collect()
}

/// As [`plain_angles`], with the factors that some files give for each pair.
fn angles<R: Read + Seek>(gguf: &mut Gguf<R>, shape: &Shape, rope: &Rope) -> Result<Vec<f32>, EngineError> {
    let mut angles = plain_angles(rope);
    let factors = match optional(gguf, "rope_freqs.weight", angles.len())? {
        Some(factors) => Some(factors),
        // Phi 3 has one set for texts as long as it was first made for and another for longer ones.
        None => optional(gguf, &format!("rope_factors_{}.weight", shape.factors), angles.len())?,
    };
    for (angle, factor) in angles.iter_mut().zip(factors.unwrap_or_default()) {
        *angle /= factor;
    }
    Ok(angles)
}

/// The sines and cosines of some positions.
struct Turns {
    turned: usize,
    halves: bool,
    /// By position, then pair.
    turns: Vec<(f32, f32)>,
}

impl Turns {
    fn new(rope: &Rope, angles: &[f32], position: usize, count: usize) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a context has fewer than 2^24 tokens")]
        let turn = |position: usize, angle: &f32| {
            let (sine, cosine) = (position as f32 * angle).sin_cos();
            (sine * rope.magnitude, cosine * rope.magnitude)
        };
        let turns = (position..position + count)
            .flat_map(|position| angles.iter().map(move |angle| turn(position, angle)));
        Self { turned: rope.turned, halves: rope.halves, turns: turns.collect() }
    }

    /// Turns the heads of each position.
    fn turn(&self, vectors: &mut [f32], heads: usize, head: usize) {
        let pairs = self.turned / 2;
        if pairs == 0 {
            return;
        }
        let (step, apart) = if self.halves { (1, pairs) } else { (2, 1) };
        for (vectors, turns) in vectors.chunks_exact_mut(heads * head).zip(self.turns.chunks_exact(pairs)) {
            for vector in vectors.chunks_exact_mut(head) {
                for (pair, (sine, cosine)) in turns.iter().enumerate() {
                    let (left, right) = (vector[pair * step], vector[pair * step + apart]);
                    vector[pair * step] = left * cosine - right * sine;
                    vector[pair * step + apart] = left * sine + right * cosine;
                }
            }
        }
    }
}
