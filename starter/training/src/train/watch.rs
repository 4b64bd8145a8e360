//! The messages about a running training.

use std::time::{Duration, Instant};

use super::batch::Sums;
use super::checkpoint::Checkpoint;
use crate::data::{Role, conversation, prompt};
use crate::decode::answer;

const LINE: Duration = Duration::from_secs(10);
const SAVE: Duration = Duration::from_secs(60);
/// Looking takes a few seconds.
const LOOK: Duration = Duration::from_secs(180);
/// Conversations whose calls are looked at, and the seed that only they have.
const LOOKED_AT: usize = 20;
const SEED: u64 = u64::MAX / 3;

pub struct Watch {
    line: Instant,
    save: Instant,
    look: Instant,
    tokens: u64,
    sums: Sums,
    lengths: Vec<f64>,
}

impl Watch {
    pub fn new(tokens: u64) -> Self {
        Self {
            line: Instant::now(),
            save: Instant::now(),
            look: Instant::now(),
            tokens,
            sums: Sums::default(),
            lengths: Vec::new(),
        }
    }

    pub fn count(&mut self, sums: &Sums, length: f64) {
        self.sums.said_loss += sums.said_loss;
        self.sums.said += sums.said;
        self.lengths.push(length);
    }

    pub fn is_due(&self) -> bool {
        self.line.elapsed() >= LINE
    }

    pub fn look_is_due(&self) -> bool {
        self.look.elapsed() >= LOOK
    }

    /// Asking begins the next minute.
    pub fn save_is_due(&mut self) -> bool {
        let due = self.save.elapsed() >= SAVE;
        if due {
            self.save = Instant::now();
        }
        due
    }

    /// Loss per assistant's byte since the last line, tokens so far, and tokens per second.
    pub fn line(&mut self, state: &Checkpoint, rate: f32) -> String {
        let loss = self.sums.said_loss / self.sums.said.max(1.0);
        let speed = (state.tokens - self.tokens) as f64 / self.line.elapsed().as_secs_f64();
        let length = self.lengths.iter().sum::<f64>() / self.lengths.len() as f64;
        let line = format!(
            "step {} loss {loss:.5} read {:.2} MB at {:.1} kB/s in {:.0} s, slope {length:.3}, rate {rate:.5}",
            state.step,
            state.tokens as f64 / 1e6,
            speed / 1e3,
            state.seconds,
        );
        *self = Self {
            line: Instant::now(),
            save: self.save,
            look: self.look,
            tokens: state.tokens,
            sums: Sums::default(),
            lengths: Vec::new(),
        };
        line
    }

    /// The number of first answers, to requests that it has not seen, that are right to the byte.
    pub fn right_calls(&mut self, state: &Checkpoint) -> String {
        let mut rng = fastrand::Rng::with_seed(SEED);
        let mut right = 0;
        let mut wrong = String::new();
        for _ in 0..LOOKED_AT {
            let mut talk = conversation(&mut rng);
            talk.truncate(2);
            let Some((Role::Assistant, wanted)) = talk.pop() else { continue };
            let said = answer(state.shape, &state.numbers, &prompt(&talk), wanted.len() + 40);
            if said == wanted {
                right += 1;
            } else if wrong.is_empty() {
                wrong = format!("; to {:?} it said {said:?} and not {wanted:?}", talk[0].1);
            }
        }
        self.look = Instant::now();
        format!("{right} of {LOOKED_AT} first answers right{wrong}")
    }
}
