//! The gradients of the weights.

use super::attention::attention_back;
use super::forward::{Memory, turn};
use super::ops::{norm_back, swiglu_back};
use super::row::Row;
use super::shape::LOGITS;
use super::weights::{Matrix, Weights};
use crate::matmul::View;

/// Adds to `slopes` by how much the loss of the row grows with each number; `memory` is as
/// [`forward`](super::forward) left it, and is used up.
pub fn backward(weights: &Weights, row: &Row, memory: &mut Memory, slopes: &mut [f32]) {
    let Weights { shape, numbers, .. } = *weights;
    let (tokens, d, ffn) = (row.inputs.len(), shape.width, shape.ffn);
    let Memory { product, space, rope, traces, x, normed, scales, logits, spare } = memory;
    let [dx, dnormed, dhidden, dqkv] = spare;
    let expected = row.expected();
    dx.resize(expected * d, 0.0);
    dnormed.resize(expected * d, 0.0);
    dqkv.resize(tokens * 3 * d, 0.0);

    let dlogits = View::rows(logits, LOGITS);
    product.add(
        &mut slopes[shape.head()],
        LOGITS,
        (d, expected, LOGITS),
        View::rows(normed, d).turned(),
        dlogits,
    );
    product.set(dnormed, d, (expected, LOGITS, d), dlogits, weights.back(Matrix::Head));
    dx.fill(0.0);
    norm_back(dx, &mut slopes[shape.norm()], dnormed, scales, x, &numbers[shape.norm()]);

    for (number, trace) in traces.iter_mut().enumerate().rev() {
        let layer = shape.layer(number);
        let both = 2 * ffn;
        let last = number + 1 == shape.layers;
        let (expected, seen) = if last { (expected, &trace.expecting) } else { (tokens, &trace.seen) };
        dnormed.resize(expected * d, 0.0);
        dhidden.resize(expected * ffn, 0.0);

        let up = View::rows(dx, d);
        product.add(
            &mut slopes[layer.down.clone()],
            d,
            (ffn, expected, d),
            View::rows(&trace.hidden, ffn).turned(),
            up,
        );
        product.set(dhidden, ffn, (expected, d, ffn), up, weights.back(Matrix::Down(number)));
        swiglu_back(&mut trace.gate_up, dhidden, ffn);
        let asked = View::rows(&trace.gate_up, both);
        let normed2 = View::rows(&trace.normed2, d).turned();
        product.add(&mut slopes[layer.gate_up.clone()], both, (d, expected, both), normed2, asked);
        product.set(dnormed, d, (expected, both, d), asked, weights.back(Matrix::GateUp(number)));
        let gain = layer.norm2;
        norm_back(dx, &mut slopes[gain.clone()], dnormed, &trace.scales2, &trace.x2, &numbers[gain]);

        let up = View::rows(dx, d);
        product.add(&mut slopes[layer.out.clone()], d, (d, expected, d), View::rows(seen, d).turned(), up);
        product.set(dnormed, d, (expected, d, d), up, weights.back(Matrix::Out(number)));
        if last {
            for numbers in [&mut *dx, &mut *dnormed] {
                row.scatter(numbers, d, dhidden);
                std::mem::swap(numbers, dhidden);
            }
        }
        attention_back(dqkv, dnormed, &trace.seen, &trace.sums, &trace.qkv, row, d, product, space);
        turn(rope, dqkv, row, d, -1.0);
        let asked = View::rows(dqkv, 3 * d);
        let normed = View::rows(&trace.normed, d).turned();
        product.add(&mut slopes[layer.qkv.clone()], 3 * d, (d, tokens, 3 * d), normed, asked);
        product.set(dnormed, d, (tokens, 3 * d, d), asked, weights.back(Matrix::Qkv(number)));
        let gain = layer.norm1;
        norm_back(dx, &mut slopes[gain.clone()], dnormed, &trace.scales, &trace.x, &numbers[gain]);
    }
    for (dx, &token) in dx.chunks_exact(d).zip(&row.inputs) {
        for (slope, dx) in slopes[usize::from(token) * d..][..d].iter_mut().zip(dx) {
            *slope += dx;
        }
    }
}
