//! Chooses the next token by its logits.

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::inference::kernels::exp;

/// Tokens less likely than this share of the likeliest one are never chosen. Source: llama.cpp's server.
const MIN_P: f32 = 0.05;
/// The number of latest tokens that the repetition penalty applies to.
const PENALTY_WINDOW: usize = 64;

/// The parameters of sampling. The defaults are those of llama.cpp's server, so that an agent sounds the same on both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 always chooses the likeliest token.
    pub temperature: f32,
    /// Only this many of the likeliest tokens are considered; 0 considers all.
    pub top_k: usize,
    /// Only the likeliest tokens that together reach this probability are considered.
    pub top_p: f32,
    /// Makes tokens of the last 64 less likely if it is above 1.
    pub repeat_penalty: f32,
}

impl Sampling {
    /// Always chooses the likeliest token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.8, top_k: 40, top_p: 0.95, repeat_penalty: 1.0 }
    }
}

/// Chooses tokens, one after the other.
pub(crate) struct Sampler {
    sampling: Sampling,
    random: Random,
}

/// A token and its logit.
#[derive(Clone, Copy, PartialEq)]
struct Candidate {
    logit: f32,
    id: u32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    /// The likelier token is greater. Of two alike, the lower id is.
    fn cmp(&self, other: &Self) -> Ordering {
        self.logit.total_cmp(&other.logit).then_with(|| other.id.cmp(&self.id))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling, seed: u64) -> Self {
        Self { sampling, random: Random(seed) }
    }

    /// Chooses the next token after `before` among those that `allows` accepts. Returns `None` if it accepts none.
    ///
    /// `allows` is called for the sampled token first, then for all others, the likeliest first.
    pub(crate) fn choose(
        &mut self,
        logits: &mut [f32],
        before: &[u32],
        mut allows: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        self.apply_penalty(logits, before);
        let first = self.sample(logits)?;
        if allows(first) {
            return Some(first);
        }
        let mut others: BinaryHeap<Candidate> =
            candidates(logits).filter(|candidate| candidate.id != first).collect();
        while let Some(candidate) = others.pop() {
            if allows(candidate.id) {
                return Some(candidate.id);
            }
        }
        None
    }

    fn sample(&mut self, logits: &[f32]) -> Option<u32> {
        let best = candidates(logits).max()?;
        if self.sampling.temperature <= 0.0 || self.sampling.top_k == 1 {
            return Some(best.id);
        }
        // Under `MIN_P` of the best one nothing is chosen, which leaves few to sort.
        let least = best.logit + MIN_P.ln();
        let mut kept: Vec<Candidate> =
            candidates(logits).filter(|candidate| candidate.logit >= least).collect();
        kept.sort_unstable_by(|left, right| right.cmp(left));
        if self.sampling.top_k > 0 {
            kept.truncate(self.sampling.top_k);
        }
        let weights: Vec<f32> = kept.iter().map(|candidate| exp(candidate.logit - best.logit)).collect();
        let whole: f32 = weights.iter().sum();
        let mut sum = 0.0;
        let within = weights.iter().take_while(|&&weight| {
            let inside = sum < self.sampling.top_p * whole;
            sum += weight;
            inside
        });
        let count = within.count().max(1);
        let weights: Vec<f32> = kept[..count]
            .iter()
            .map(|candidate| exp((candidate.logit - best.logit) / self.sampling.temperature))
            .collect();
        let mut left = self.random.fraction() * weights.iter().sum::<f32>();
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        Some(kept[chosen.unwrap_or(count - 1)].id)
    }

    fn apply_penalty(&self, logits: &mut [f32], before: &[u32]) {
        if self.sampling.repeat_penalty == 1.0 || self.sampling.repeat_penalty <= 0.0 {
            return;
        }
        let mut recent = before[before.len().saturating_sub(PENALTY_WINDOW)..].to_vec();
        recent.sort_unstable();
        recent.dedup();
        for id in recent {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit = if *logit > 0.0 {
                    *logit / self.sampling.repeat_penalty
                } else {
                    *logit * self.sampling.repeat_penalty
                };
            }
        }
    }
}

fn candidates(logits: &[f32]) -> impl Iterator<Item = Candidate> {
    let all = logits.iter().zip(0..).map(|(&logit, id)| Candidate { logit, id });
    all.filter(|candidate| candidate.logit.is_finite())
}

/// SplitMix64, a small generator that is good enough to choose words.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to below 1.
    #[expect(clippy::cast_precision_loss, reason = "24 bits are what an f32 holds")]
    fn fraction(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u32 << 24) as f32
    }
}
