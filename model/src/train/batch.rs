//! A step's conversations, read and learnt from by all threads.

use super::Plan;
use crate::data::{conversation, encode};
use crate::net::ops::add;
use crate::net::{Memory, Row, Shape, Weights, backward, forward};

/// What one thread works with.
pub struct Share {
    memory: Memory,
    pub slopes: Vec<f32>,
    sums: Sums,
}

/// What a step comes to, over all its rows.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sums {
    /// Weighted loss, and the weights' sum.
    pub loss: f64,
    pub weight: f64,
    /// The assistant's bytes: loss in nats, and how many.
    pub said_loss: f64,
    pub said: f64,
    pub tokens: u64,
}

impl Share {
    pub fn new(memory: Memory, shape: Shape) -> Self {
        Self { memory, slopes: vec![0.0; shape.size()], sums: Sums::default() }
    }
}

/// Reads the rows of a step. The slopes of all are then the first share's.
///
/// Thread n has each n-th row, so that the sums have the same order each time.
pub fn learn(plan: &Plan, step: u64, weights: &Weights, shares: &mut [Share]) -> Sums {
    let threads = shares.len();
    std::thread::scope(|scope| {
        for (thread, share) in shares.iter_mut().enumerate() {
            scope.spawn(move || {
                share.slopes.fill(0.0);
                share.sums = Sums::default();
                for number in (thread..plan.rows).step_by(threads) {
                    let row = row(plan, step, number);
                    let (loss, said_loss) = forward(weights, &row, &mut share.memory);
                    backward(weights, &row, &mut share.memory, &mut share.slopes);
                    share.sums.loss += loss;
                    share.sums.said_loss += said_loss;
                    share.sums.weight += row.weights.iter().map(|&weight| f64::from(weight)).sum::<f64>();
                    share.sums.said += row.weights.iter().filter(|&&weight| weight == 1.0).count() as f64;
                    share.sums.tokens += row.read as u64;
                }
            });
        }
    });
    let mut total = Sums::default();
    let Some((first, others)) = shares.split_first_mut() else { return total };
    for share in &*others {
        add(&mut first.slopes, &share.slopes);
    }
    for sums in std::iter::once(&first.sums).chain(others.iter().map(|share| &share.sums)) {
        total.loss += sums.loss;
        total.weight += sums.weight;
        total.said_loss += sums.said_loss;
        total.said += sums.said;
        total.tokens += sums.tokens;
    }
    total
}

/// The same for the same seed, step and number.
fn row(plan: &Plan, step: u64, number: usize) -> Row {
    let seed = plan.seed.wrapping_mul(1 << 40).wrapping_add(step * plan.rows as u64 + number as u64);
    let mut rng = fastrand::Rng::with_seed(seed);
    // Neighbouring seeds begin alike.
    for _ in 0..4 {
        rng.u64(..);
    }
    let mut row = Row::default();
    loop {
        let next = encode(&conversation(&mut rng));
        if row.length_with(&next) > plan.tokens {
            // One that is longer than a row has one for itself.
            if row.parts.is_empty() {
                row.push(&next, plan.other);
            }
            return row;
        }
        row.push(&next, plan.other);
    }
}
