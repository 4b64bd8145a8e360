//! From slopes to the next numbers: Muon for the matrices inside the layers, AdamW for the rest.

use super::checkpoint::Checkpoint;
use super::muon::Muon;
use crate::net::Shape;

const MEMORY: f32 = 0.9;
const MEMORY_OF_SQUARES: f32 = 0.98;
const DECAY: f32 = 0.05;
const TINY: f32 = 1e-8;
/// Slopes that are longer than this together are shortened to it.
const LONGEST: f64 = 1.0;

pub struct Optimizer {
    muon: Muon,
    /// Per number: how AdamW treats it.
    kinds: Vec<(std::ops::Range<usize>, Kind)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Decaying,
    Free,
}

impl Optimizer {
    pub fn new(shape: Shape, threads: usize) -> Self {
        let mut kinds = vec![(shape.embedding(), Kind::Free), (shape.head(), Kind::Decaying)];
        kinds.extend(shape.norms().into_iter().map(|norm| (norm, Kind::Free)));
        Self { muon: Muon::new(shape, threads), kinds }
    }

    /// One step at `rate`. The slopes are multiplied by `scale` first. Returns their length before it was limited.
    pub fn step(&self, state: &mut Checkpoint, slopes: &mut [f32], rate: f32, scale: f32) -> f64 {
        let length =
            slopes.iter().map(|&s| f64::from(s) * f64::from(s)).sum::<f64>().sqrt() * f64::from(scale);
        let scale = scale * (LONGEST / length).min(1.0) as f32;
        slopes.iter_mut().for_each(|slope| *slope *= scale);
        let time = (state.step + 1) as i32;
        let (fresh, fresh_squares) = (1.0 - MEMORY.powi(time), 1.0 - MEMORY_OF_SQUARES.powi(time));
        for (range, kind) in &self.kinds {
            let decay = if *kind == Kind::Decaying { 1.0 - rate * DECAY } else { 1.0 };
            let numbers = &mut state.numbers[range.clone()];
            let (means, squares) = (&mut state.means[range.clone()], &mut state.squares[range.clone()]);
            let slopes = &slopes[range.clone()];
            for (((number, mean), square), &slope) in numbers.iter_mut().zip(means).zip(squares).zip(slopes) {
                *mean += (1.0 - MEMORY) * (slope - *mean);
                *square += (1.0 - MEMORY_OF_SQUARES) * (slope * slope - *square);
                let step = *mean / fresh / ((*square / fresh_squares).sqrt() + TINY);
                *number = *number * decay - rate * step;
            }
        }
        self.muon.step(&mut state.numbers, &mut state.means, slopes, rate, DECAY);
        length
    }
}
