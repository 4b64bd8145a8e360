//! Attention inside each conversation of a row.

use super::ops::{soften, soften_back};
use super::row::Row;
use super::shape::HEAD;
use crate::matmul::{Matmul, View};

/// Queries that are worked on together: enough to make up for reordering the keys, few enough to leave out most of
/// what a query may not see.
const QUERIES: usize = 128;

/// Space for scores; grows to [`QUERIES`] times the longest conversation.
#[derive(Default)]
pub struct Space {
    scores: Vec<f32>,
    asked: Vec<f32>,
}

impl Space {
    fn fit(&mut self, size: usize) {
        if self.scores.len() < size {
            self.scores.resize(size, 0.0);
            self.asked.resize(size, 0.0);
        }
    }
}

/// Fills `out` (a row of `width` per token) from `qkv` (3 · `width`, turned by their place), and `sums` (a number
/// per head and token, token by token inside a head) with the logarithms of the sums below the scores' exponentials.
pub fn attention(
    out: &mut [f32],
    sums: &mut [f32],
    qkv: &[f32],
    row: &Row,
    width: usize,
    product: &mut Matmul,
    space: &mut Space,
) {
    let tokens = row.inputs.len();
    let scale = (HEAD as f32).powf(-0.5);
    for part in &row.parts {
        for head in 0..width / HEAD {
            for begin in part.clone().step_by(QUERIES) {
                let end = part.end.min(begin + QUERIES);
                let (asking, seen) = (end - begin, end - part.start);
                let at = |token: usize, which: usize| {
                    View::rows(&qkv[token * 3 * width + which * width + head * HEAD..], 3 * width)
                };
                space.fit(asking * seen);
                product.set(
                    &mut space.scores,
                    seen,
                    (asking, HEAD, seen),
                    at(begin, 0),
                    at(part.start, 1).turned(),
                );
                let sums = &mut sums[head * tokens..][begin..end];
                let first = begin - part.start + 1;
                soften(&mut space.scores[..asking * seen], sums, seen, first, scale);
                let out = &mut out[begin * width + head * HEAD..];
                product.set(
                    out,
                    width,
                    (asking, seen, HEAD),
                    View::rows(&space.scores, seen),
                    at(part.start, 2),
                );
            }
        }
    }
}

/// Fills `dqkv` with what `dout` asks of `qkv`.
#[allow(clippy::too_many_arguments)]
pub fn attention_back(
    dqkv: &mut [f32],
    dout: &[f32],
    out: &[f32],
    sums: &[f32],
    qkv: &[f32],
    row: &Row,
    width: usize,
    product: &mut Matmul,
    space: &mut Space,
) {
    let tokens = row.inputs.len();
    let scale = (HEAD as f32).powf(-0.5);
    let mut means = [0.0; QUERIES];
    dqkv.fill(0.0);
    for part in &row.parts {
        for head in 0..width / HEAD {
            for begin in part.clone().step_by(QUERIES) {
                let end = part.end.min(begin + QUERIES);
                let (asking, seen) = (end - begin, end - part.start);
                let place = |token: usize, which: usize| token * 3 * width + which * width + head * HEAD;
                let at = |token: usize, which: usize| View::rows(&qkv[place(token, which)..], 3 * width);
                let gone = View::rows(&dout[begin * width + head * HEAD..], width);
                space.fit(asking * seen);
                product.set(
                    &mut space.scores,
                    seen,
                    (asking, HEAD, seen),
                    at(begin, 0),
                    at(part.start, 1).turned(),
                );
                product.set(&mut space.asked, seen, (asking, HEAD, seen), gone, at(part.start, 2).turned());
                let first = begin - part.start + 1;
                for (mean, token) in means.iter_mut().zip(begin..end) {
                    let range = token * width + head * HEAD..token * width + (head + 1) * HEAD;
                    *mean = dout[range.clone()].iter().zip(&out[range]).map(|(x, y)| x * y).sum();
                }
                let size = asking * seen;
                let sums = &sums[head * tokens..][begin..end];
                soften_back(
                    &mut space.scores[..size],
                    &mut space.asked[..size],
                    sums,
                    &means,
                    seen,
                    first,
                    scale,
                );
                let (shares, asked) = (View::rows(&space.scores, seen), View::rows(&space.asked, seen));
                product.add(
                    &mut dqkv[place(part.start, 2)..],
                    3 * width,
                    (seen, asking, HEAD),
                    shares.turned(),
                    gone,
                );
                product.add(
                    &mut dqkv[place(begin, 0)..],
                    3 * width,
                    (asking, seen, HEAD),
                    asked,
                    at(part.start, 1),
                );
                product.add(
                    &mut dqkv[place(part.start, 1)..],
                    3 * width,
                    (seen, asking, HEAD),
                    asked.turned(),
                    at(begin, 0),
                );
            }
        }
    }
}
