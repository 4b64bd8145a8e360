//! Training: batches of made-up conversations, two threads, checkpoints.

mod batch;
mod checkpoint;
mod muon;
mod optimizer;
mod schedule;
mod watch;

use std::path::PathBuf;
use std::time::Instant;

pub use checkpoint::Checkpoint;
pub use schedule::Schedule;

use crate::matmul::Precision;
use crate::net::{Memory, Packs, Shape, Weights, initial};
use batch::{GROUPS, Group, learn};
use optimizer::Optimizer;
use watch::Watch;

/// All that decides which model comes out, and where it goes.
#[derive(Clone, Debug)]
pub struct Plan {
    pub shape: Shape,
    pub schedule: Schedule,
    pub seed: u64,
    /// Rows in a step, and tokens in a row.
    pub rows: usize,
    pub tokens: usize,
    /// The weight of a byte that is not the assistant's, and the step until which it holds.
    pub other: f32,
    pub other_until: u64,
    pub threads: usize,
    /// The file to which the state is written every minute, and from which the training continues.
    pub checkpoint: PathBuf,
    /// Stop after so many minutes, to go on another time.
    pub minutes: Option<f64>,
}

/// The error that ended the training.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    #[error("the checkpoint's shape is {found:?} and {wanted:?} was asked for")]
    OtherShape { found: Shape, wanted: Shape },
    #[error("the loss is no number at step {step}")]
    Diverged { step: u64 },
}

/// Trains until the plan's last step or minute; returns the last checkpoint, which is also written.
///
/// The same plan gives the same numbers on one machine, also when it was interrupted.
///
/// # Errors
/// [`Error::Checkpoint`] when it cannot be read or written, [`Error::OtherShape`] when it is another network's, and
/// [`Error::Diverged`].
pub fn train(plan: &Plan, mut say: impl FnMut(String)) -> Result<Checkpoint, Error> {
    let mut state = start(plan)?;
    let shape = plan.shape;
    let optimizer = Optimizer::new(shape, plan.threads);
    let mut memories: Vec<Memory> = (0..plan.threads).map(|_| Memory::new(Precision::Fast)).collect();
    let mut groups: Vec<Group> = (0..GROUPS).map(|_| Group::new(shape)).collect();
    let mut packs = Packs::default();
    let begun = Instant::now();
    let before = state.seconds;
    let mut watch = Watch::new(state.tokens);
    say(format!(
        "{} parameters, {shape:?}, from step {} to {}",
        shape.parameters(),
        state.step,
        plan.schedule.steps
    ));
    while state.step < plan.schedule.steps {
        let weights = Weights::new(shape, &state.numbers, Precision::Fast, &mut packs);
        let sums = learn(plan, state.step, &weights, &mut memories, &mut groups);
        if !sums.loss.is_finite() {
            return Err(Error::Diverged { step: state.step });
        }
        let rate = plan.schedule.rate(state.step);
        let length = optimizer.step(&mut state, &mut groups[0].slopes, rate, 1.0 / sums.weight as f32);
        state.step += 1;
        state.tokens += sums.tokens;
        state.seconds = before + begun.elapsed().as_secs_f64();
        watch.count(&sums, length);
        if watch.is_due() {
            say(watch.line(&state, rate));
        }
        let over = plan.minutes.is_some_and(|minutes| begun.elapsed().as_secs_f64() > minutes * 60.0);
        if watch.save_is_due() || over {
            state.write(&plan.checkpoint)?;
        }
        if watch.look_is_due() {
            say(watch.right_calls(&state));
        }
        if over {
            break;
        }
    }
    state.write(&plan.checkpoint)?;
    Ok(state)
}

fn start(plan: &Plan) -> Result<Checkpoint, Error> {
    if !plan.checkpoint.exists() {
        return Ok(Checkpoint::new(plan.shape, initial(plan.shape, plan.seed)));
    }
    let state = Checkpoint::read(&plan.checkpoint)?;
    if state.shape != plan.shape {
        return Err(Error::OtherShape { found: state.shape, wanted: plan.shape });
    }
    Ok(state)
}
