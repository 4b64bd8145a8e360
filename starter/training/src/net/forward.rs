//! The output of the network for a row.

use super::attention::{Space, attention};
use super::ops::{Rope, add, cross_entropy, norm, swiglu};
use super::row::Row;
use super::shape::{LOGITS, Shape};
use super::weights::{Matrix, Weights};
use crate::matmul::{Matmul, Precision, View};

/// The values that a layer computed, which the backward pass needs.
#[derive(Default)]
pub(super) struct Trace {
    /// The input, its norm, and 1 / rms.
    pub x: Vec<f32>,
    pub normed: Vec<f32>,
    pub scales: Vec<f32>,
    pub qkv: Vec<f32>,
    pub seen: Vec<f32>,
    pub sums: Vec<f32>,
    /// In the last layer, what was seen from where something is expected.
    pub expecting: Vec<f32>,
    /// The same between attention and feed-forward.
    pub x2: Vec<f32>,
    pub normed2: Vec<f32>,
    pub scales2: Vec<f32>,
    pub gate_up: Vec<f32>,
    pub hidden: Vec<f32>,
}

/// The space that one thread works in; grows to the longest row it has seen, and is used again.
pub struct Memory {
    pub(super) product: Matmul,
    pub(super) space: Space,
    pub(super) rope: Rope,
    pub(super) traces: Vec<Trace>,
    /// The output of the last layer, its norm, and 1 / rms.
    pub(super) x: Vec<f32>,
    pub(super) normed: Vec<f32>,
    pub(super) scales: Vec<f32>,
    pub(super) logits: Vec<f32>,
    pub(super) spare: [Vec<f32>; 4],
}

impl Memory {
    pub fn new(precision: Precision) -> Self {
        Self {
            product: Matmul::new(precision),
            space: Space::default(),
            rope: Rope::new(0),
            traces: Vec::new(),
            x: Vec::new(),
            normed: Vec::new(),
            scales: Vec::new(),
            logits: Vec::new(),
            spare: Default::default(),
        }
    }
}

/// Reads a row; returns the weighted sum of its losses, and that of the assistant's bytes alone.
///
/// `memory` then holds what [`backward`](super::backward) needs.
pub fn forward(weights: &Weights, row: &Row, memory: &mut Memory) -> (f64, f64) {
    let Weights { shape, numbers, .. } = *weights;
    let (tokens, d) = (row.inputs.len(), shape.width);
    let Memory { product, space, rope, traces, x, normed, scales, logits, spare } = memory;
    let longest = row.parts.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    if rope.places() < longest {
        *rope = Rope::new(longest.next_power_of_two());
    }
    traces.resize_with(shape.layers, Trace::default);
    let made = &mut spare[0];

    x.resize(tokens * d, 0.0);
    for (x, &token) in x.chunks_exact_mut(d).zip(&row.inputs) {
        x.copy_from_slice(&numbers[usize::from(token) * d..][..d]);
    }
    for (number, trace) in traces.iter_mut().enumerate() {
        let layer = shape.layer(number);
        let last = number + 1 == shape.layers;
        // Behind the last attention, only the places matter that something is expected of.
        let expected = if last { row.expected() } else { tokens };
        trace.fit(tokens, expected, shape);

        trace.x.copy_from_slice(x);
        norm(&mut trace.normed, &mut trace.scales, x, &numbers[layer.norm1]);
        product.set(
            &mut trace.qkv,
            3 * d,
            (tokens, d, 3 * d),
            View::rows(&trace.normed, d),
            weights.forward(Matrix::Qkv(number)),
        );
        turn(rope, &mut trace.qkv, row, d, 1.0);
        attention(&mut trace.seen, &mut trace.sums, &trace.qkv, row, d, product, space);
        let seen = if last {
            row.gather(&trace.seen, d, &mut trace.expecting);
            row.gather(x, d, made);
            std::mem::swap(x, made);
            &trace.expecting
        } else {
            &trace.seen
        };
        product.add(x, d, (expected, d, d), View::rows(seen, d), weights.forward(Matrix::Out(number)));

        trace.x2.copy_from_slice(x);
        norm(&mut trace.normed2, &mut trace.scales2, x, &numbers[layer.norm2]);
        let both = 2 * shape.ffn;
        product.set(
            &mut trace.gate_up,
            both,
            (expected, d, both),
            View::rows(&trace.normed2, d),
            weights.forward(Matrix::GateUp(number)),
        );
        swiglu(&mut trace.hidden, &trace.gate_up, shape.ffn);
        made.resize(expected * d, 0.0);
        product.set(
            made,
            d,
            (expected, shape.ffn, d),
            View::rows(&trace.hidden, shape.ffn),
            weights.forward(Matrix::Down(number)),
        );
        add(x, made);
    }
    let expected = row.expected();
    normed.resize(expected * d, 0.0);
    scales.resize(expected, 0.0);
    logits.resize(expected * LOGITS, 0.0);
    norm(normed, scales, x, &numbers[shape.norm()]);
    product.set(logits, LOGITS, (expected, d, LOGITS), View::rows(normed, d), weights.forward(Matrix::Head));
    let (logits, filling) = logits.split_at_mut(row.places.len() * LOGITS);
    filling.fill(0.0);
    cross_entropy(logits, &row.targets, &row.weights)
}

/// Turns queries and keys by their place in the conversation.
pub(super) fn turn(rope: &Rope, qkv: &mut [f32], row: &Row, width: usize, sign: f32) {
    for part in &row.parts {
        rope.turn(&mut qkv[part.start * 3 * width..part.end * 3 * width], 3 * width, 2 * width, 0, sign);
    }
}

impl Trace {
    fn fit(&mut self, tokens: usize, expected: usize, shape: Shape) {
        let d = shape.width;
        for (numbers, tokens, size) in [
            (&mut self.x, tokens, d),
            (&mut self.normed, tokens, d),
            (&mut self.scales, tokens, 1),
            (&mut self.qkv, tokens, 3 * d),
            (&mut self.seen, tokens, d),
            (&mut self.sums, tokens, shape.heads()),
            (&mut self.x2, expected, d),
            (&mut self.normed2, expected, d),
            (&mut self.scales2, expected, 1),
            (&mut self.gate_up, expected, 2 * shape.ffn),
            (&mut self.hidden, expected, shape.ffn),
        ] {
            numbers.resize(tokens * size, 0.0);
        }
    }
}
