//! Estimates tokens for a server that cannot count them, from the counts that it reports for whole prompts.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The shortest prompt to learn from, in bytes. In shorter ones the template's own tokens weigh too much.
const MIN_SAMPLE_BYTES: usize = 4096;

/// Tokens per 1000 bytes before anything is learned, which is bytes / 4. Source: architecture of the first kontekst.
const DEFAULT_RATE: u32 = 250;

/// The rates that natural text can have: between 10 bytes per token and 1 byte per token.
const PLAUSIBLE_RATES: std::ops::RangeInclusive<u32> = 100..=1000;

/// The tokens per 1000 bytes of one model's texts.
pub(super) struct TokenEstimator(AtomicU32);

impl Default for TokenEstimator {
    fn default() -> Self {
        Self(AtomicU32::new(DEFAULT_RATE))
    }
}

impl TokenEstimator {
    /// Estimates the tokens of a text with `bytes` bytes.
    pub(super) fn estimate(&self, bytes: usize) -> u32 {
        let tokens = bytes as u64 * u64::from(self.0.load(Relaxed)) / 1000;
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    /// Learns that a prompt of `bytes` bytes had `tokens` tokens.
    ///
    /// A server that cuts prompts reports too few tokens. If the prompt may not have fitted `window`, the rate is
    /// therefore only ever raised.
    pub(super) fn learn(&self, bytes: usize, tokens: u32, window: Option<u32>) {
        if bytes < MIN_SAMPLE_BYTES {
            return;
        }
        let whole = window.is_some_and(|window| self.estimate(bytes) < window / 4 * 3);
        let weight = u32::try_from(u64::from(tokens) * 1000 / bytes as u64).unwrap_or(u32::MAX);
        if PLAUSIBLE_RATES.contains(&weight) && (whole || weight > self.0.load(Relaxed)) {
            self.0.store(weight, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_server_are_learned_unless_it_may_have_cut_the_prompt() {
        let weight = TokenEstimator::default();
        assert_eq!(weight.estimate(4000), 1000);
        weight.learn(100, 90, Some(65_536)); // too short
        weight.learn(8000, 1, Some(65_536)); // impossible
        weight.learn(8000, 1600, None); // cut, perhaps
        weight.learn(8000, 1600, Some(2048));
        assert_eq!(weight.estimate(4000), 1000);
        weight.learn(8000, 1600, Some(4096));
        assert_eq!(weight.estimate(4000), 800);
        weight.learn(8000, 4000, None);
        assert_eq!(weight.estimate(4000), 2000);
    }
}
