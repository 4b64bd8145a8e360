//! Chance, and the words and names that are drawn by it.

mod names;
mod words;

use fastrand::Rng;

pub use words::{capital, is_small_word};

/// A seeded source of choices. What it draws for training and what it draws held out have no name and no
/// content word in common.
pub struct Draw {
    pub rng: Rng,
    held_out: bool,
}

impl Draw {
    pub fn for_training(rng: Rng) -> Self {
        Self { rng, held_out: false }
    }

    pub fn held_out(rng: Rng) -> Self {
        Self { rng, held_out: true }
    }

    /// Returns true `percent` times in a hundred.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        self.rng.u32(low..=high)
    }

    /// The same, small ones more often.
    pub fn small(&mut self, low: u32, high: u32) -> u32 {
        let top = self.between(low, high);
        self.between(low, top)
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(0..choices.len())]
    }

    /// One of the choices; the number says how often it comes.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u32, T)]) -> T {
        let total = choices.iter().map(|(weight, _)| weight).sum();
        let mut at = self.rng.u32(0..total);
        for &(weight, choice) in choices {
            if at < weight {
                return choice;
            }
            at -= weight;
        }
        choices[0].1
    }

    /// Returns a text of `make` that this source may draw. One text in eight is held out.
    fn owned(&mut self, make: impl Fn(&mut Self) -> String) -> String {
        loop {
            let text = make(self);
            if hash(&text).is_multiple_of(8) == self.held_out {
                return text;
            }
        }
    }
}

/// FNV-1a of the letters and digits in lower case, so that `Foo_bar` and `foobar` are on the same side.
fn hash(text: &str) -> u32 {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .fold(0x811c_9dc5, |hash, c| (hash ^ u32::from(c)).wrapping_mul(0x0100_0193))
        >> 7
}
