//! Muon (Jordan and others, 2024): the mean of a matrix' slopes is made orthogonal before it is taken as a step, so
//! that no direction is learnt much faster than another.
//!
//! The steps are scaled to the size of AdamW's (0.2 per number, Liu and others, 2025), so both share a rate.

use crate::matmul::{Matmul, Precision, View};
use crate::net::Shape;

const MEMORY: f32 = 0.95;
/// Of the polynomial that is applied five times; by its authors.
const POLYNOMIAL: [f32; 3] = [3.4445, -4.7750, 2.0315];
const ROUNDS: usize = 5;
const SIZE: f32 = 0.2;

/// A matrix, or one of several that lie side by side.
#[derive(Clone, Copy)]
struct Block {
    at: usize,
    rows: usize,
    columns: usize,
    /// From row to row.
    step: usize,
}

pub struct Muon {
    blocks: Vec<Block>,
    threads: usize,
}

impl Muon {
    pub fn new(shape: Shape, threads: usize) -> Self {
        let mut blocks = Vec::new();
        for (range, rows, step) in shape.hidden() {
            // Queries, keys and values; gate and up.
            let columns = if step == 3 * shape.width && rows == shape.width {
                shape.width
            } else if step == 2 * shape.ffn {
                shape.ffn
            } else {
                step
            };
            blocks.extend((0..step).step_by(columns).map(|first| Block {
                at: range.start + first,
                rows,
                columns,
                step,
            }));
        }
        Self { blocks, threads }
    }

    pub fn step(&self, numbers: &mut [f32], means: &mut [f32], slopes: &[f32], rate: f32, decay: f32) {
        for block in &self.blocks {
            for row in 0..block.rows {
                let range = block.at + row * block.step..block.at + row * block.step + block.columns;
                let (means, slopes) = (&mut means[range.clone()], &slopes[range]);
                means
                    .iter_mut()
                    .zip(slopes)
                    .for_each(|(mean, slope)| *mean = MEMORY * *mean + (1.0 - MEMORY) * slope);
            }
        }
        let means = &*means;
        let share = self.blocks.len().div_ceil(self.threads);
        let steps: Vec<Vec<f32>> = std::thread::scope(|scope| {
            let work = self.blocks.chunks(share).map(|blocks| {
                scope.spawn(move || {
                    blocks.iter().map(|block| orthogonal(*block, means, slopes)).collect::<Vec<_>>()
                })
            });
            let work: Vec<_> = work.collect();
            work.into_iter().flat_map(|thread| thread.join().expect("a product does not panic")).collect()
        });
        for (block, step) in self.blocks.iter().zip(&steps) {
            let rate_here = rate * SIZE * (block.rows.max(block.columns) as f32).sqrt();
            for (row, step) in step.chunks_exact(block.columns).enumerate() {
                let numbers = &mut numbers[block.at + row * block.step..][..block.columns];
                numbers
                    .iter_mut()
                    .zip(step)
                    .for_each(|(number, step)| *number = *number * (1.0 - rate * decay) - rate_here * step);
            }
        }
    }
}

/// The nearest orthogonal matrix, about, to the mean one step ahead.
fn orthogonal(block: Block, means: &[f32], slopes: &[f32]) -> Vec<f32> {
    let Block { at, rows, columns, step } = block;
    let mut x = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        let range = at + row * step..at + row * step + columns;
        x.extend(
            means[range.clone()]
                .iter()
                .zip(&slopes[range])
                .map(|(mean, slope)| MEMORY * mean + (1.0 - MEMORY) * slope),
        );
    }
    let length = x.iter().map(|x| x * x).sum::<f32>().sqrt() + 1e-12;
    x.iter_mut().for_each(|x| *x /= length);
    let mut product = Matmul::new(Precision::Fast);
    // The products of the shorter side are the cheaper ones.
    let small = rows.min(columns);
    let (mut square, mut fourth, mut next) =
        (vec![0.0; small * small], vec![0.0; small * small], vec![0.0; rows * columns]);
    let [a, b, c] = POLYNOMIAL;
    for _ in 0..ROUNDS {
        let view = View::rows(&x, columns);
        if rows <= columns {
            product.set(&mut square, small, (small, columns, small), view, view.turned());
        } else {
            product.set(&mut square, small, (small, rows, small), view.turned(), view);
        }
        let view = View::rows(&square, small);
        product.set(&mut fourth, small, (small, small, small), view, view);
        fourth.iter_mut().zip(&square).for_each(|(fourth, square)| *fourth = b * square + c * *fourth);
        let (mix, view) = (View::rows(&fourth, small), View::rows(&x, columns));
        if rows <= columns {
            product.set(&mut next, columns, (rows, small, columns), mix, view);
        } else {
            product.set(&mut next, columns, (rows, small, columns), view, mix);
        }
        next.iter_mut().zip(&x).for_each(|(next, x)| *next += a * x);
        std::mem::swap(&mut x, &mut next);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::{Block, orthogonal};

    #[test]
    fn steps_are_about_orthogonal() {
        for (rows, columns) in [(32, 64), (64, 32), (64, 64)] {
            let mut rng = fastrand::Rng::with_seed(3);
            let means: Vec<f32> = (0..rows * columns).map(|_| rng.f32() - 0.5).collect();
            let x =
                orthogonal(Block { at: 0, rows, columns, step: columns }, &means, &vec![0.0; rows * columns]);
            // All singular values are near 1, so the squares' sum is near their number.
            let squares = x.iter().map(|x| x * x).sum::<f32>() / rows.min(columns) as f32;
            assert!((0.5..1.4).contains(&squares), "{rows} {columns} {squares}");
            let along = x.iter().zip(&means).map(|(x, mean)| x * mean).sum::<f32>();
            assert!(along > 0.0);
        }
    }
}
