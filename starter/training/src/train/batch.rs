//! A step's conversations, read and learnt from by all threads.

use std::sync::Mutex;

use super::Plan;
use crate::data::{conversation, encode};
use crate::net::ops::add;
use crate::net::{Memory, Row, Shape, Weights, backward, forward};

/// Rows that are read one after the other; their slopes are summed apart from the others'.
///
/// There are always as many groups, whichever thread reads them: so the sums are the same with any number of
/// threads, and no thread waits long for another that has to share its core.
pub struct Group {
    pub slopes: Vec<f32>,
    sums: Sums,
}

/// In a step. A step has a multiple of so many rows.
pub const GROUPS: usize = 8;

/// The result of a step, over all its rows.
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

impl Group {
    pub fn new(shape: Shape) -> Self {
        Self { slopes: vec![0.0; shape.size()], sums: Sums::default() }
    }
}

/// Reads the rows of a step, with a thread per memory. The slopes of all are then the first group's.
pub fn learn(
    plan: &Plan,
    step: u64,
    weights: &Weights,
    memories: &mut [Memory],
    groups: &mut [Group],
) -> Sums {
    let rows = plan.rows.div_ceil(groups.len());
    let open = Mutex::new(groups.iter_mut().enumerate());
    std::thread::scope(|scope| {
        for memory in memories {
            scope.spawn(|| {
                loop {
                    let next = open.lock().expect("no thread panics while it holds this").next();
                    let Some((number, group)) = next else { break };
                    group.slopes.fill(0.0);
                    group.sums = Sums::default();
                    for number in (number * rows..plan.rows).take(rows) {
                        group.read(&row(plan, step, number), weights, memory);
                    }
                }
            });
        }
    });
    let mut total = Sums::default();
    let Some((first, others)) = groups.split_first_mut() else { return total };
    for group in &*others {
        add(&mut first.slopes, &group.slopes);
    }
    for sums in std::iter::once(&first.sums).chain(others.iter().map(|group| &group.sums)) {
        total.loss += sums.loss;
        total.weight += sums.weight;
        total.said_loss += sums.said_loss;
        total.said += sums.said;
        total.tokens += sums.tokens;
    }
    total
}

impl Group {
    fn read(&mut self, row: &Row, weights: &Weights, memory: &mut Memory) {
        let (loss, said_loss) = forward(weights, row, memory);
        backward(weights, row, memory, &mut self.slopes);
        self.sums.loss += loss;
        self.sums.said_loss += said_loss;
        self.sums.weight += row.weights.iter().map(|&weight| f64::from(weight)).sum::<f64>();
        self.sums.said += row.weights.iter().filter(|&&weight| weight == 1.0).count() as f64;
        self.sums.tokens += row.read as u64;
    }
}

/// The same for the same seed, step and number.
fn row(plan: &Plan, step: u64, number: usize) -> Row {
    let seed = plan.seed.wrapping_mul(1 << 40).wrapping_add(step * plan.rows as u64 + number as u64);
    let mut rng = fastrand::Rng::with_seed(seed);
    // Neighbouring seeds begin alike.
    for _ in 0..4 {
        rng.u64(..);
    }
    let other = if step < plan.other_until { plan.other } else { 0.0 };
    let mut row = Row::default();
    loop {
        let next = encode(&conversation(&mut rng));
        if row.length_with(&next) > plan.tokens {
            // One that is longer than a row has one for itself.
            if row.parts.is_empty() {
                row.push(&next, other);
            }
            return row;
        }
        row.push(&next, other);
    }
}
