//! How the next token is chosen.

use std::{cmp::Ordering, collections::BinaryHeap};

use kontekst_kernels::exp;

use crate::core::Sampling;

/// What llama.cpp's server takes where a request says nothing, so that an agent sounds the same on both.
const TEMPERATURE: f64 = 0.8;
const TOP_K: u32 = 40;
const TOP_P: f64 = 0.95;
const MIN_P: f32 = 0.05;
/// Tokens that a penalty for repetition looks back at.
const LOOKS_BACK: usize = 64;

/// Chooses tokens, one after the other.
pub struct Sampler {
    temperature: f32,
    top_k: usize,
    top_p: f32,
    penalty: f32,
    random: Random,
}

/// A token and how likely it is, relative to others.
#[derive(Clone, Copy, PartialEq)]
struct Candidate {
    logit: f32,
    id: u32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    /// The likelier one first; of two alike, the lower number.
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
    #[expect(
        clippy::cast_possible_truncation,
        reason = "logits are f32, and so is what they are compared with"
    )]
    pub fn new(sampling: &Sampling, seed: u64) -> Self {
        Self {
            temperature: sampling.temperature.unwrap_or(TEMPERATURE) as f32,
            top_k: sampling.top_k.unwrap_or(TOP_K) as usize,
            top_p: sampling.top_p.unwrap_or(TOP_P) as f32,
            penalty: sampling.repeat_penalty.unwrap_or(1.0) as f32,
            random: Random(seed),
        }
    }

    /// The next token after `before`, of those that `allows` lets pass; none if it lets none pass.
    ///
    /// What is chosen first is offered first, then all others, the likeliest before the less likely.
    pub fn choose(
        &mut self,
        logits: &mut [f32],
        before: &[u32],
        mut allows: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        self.penalise(logits, before);
        let first = self.first(logits)?;
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

    fn first(&mut self, logits: &[f32]) -> Option<u32> {
        let best = candidates(logits).max()?;
        if self.temperature <= 0.0 || self.top_k == 1 {
            return Some(best.id);
        }
        // Under `MIN_P` of the best one nothing is chosen, which leaves few to sort.
        let least = best.logit + MIN_P.ln();
        let mut kept: Vec<Candidate> =
            candidates(logits).filter(|candidate| candidate.logit >= least).collect();
        kept.sort_unstable_by(|left, right| right.cmp(left));
        if self.top_k > 0 {
            kept.truncate(self.top_k);
        }
        let weights: Vec<f32> = kept.iter().map(|candidate| exp(candidate.logit - best.logit)).collect();
        let whole: f32 = weights.iter().sum();
        let mut sum = 0.0;
        let within = weights.iter().take_while(|&&weight| {
            let inside = sum < self.top_p * whole;
            sum += weight;
            inside
        });
        let count = within.count().max(1);
        let weights: Vec<f32> = kept[..count]
            .iter()
            .map(|candidate| exp((candidate.logit - best.logit) / self.temperature))
            .collect();
        let mut left = self.random.fraction() * weights.iter().sum::<f32>();
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        Some(kept[chosen.unwrap_or(count - 1)].id)
    }

    fn penalise(&self, logits: &mut [f32], before: &[u32]) {
        if self.penalty == 1.0 || self.penalty <= 0.0 {
            return;
        }
        let mut recent = before[before.len().saturating_sub(LOOKS_BACK)..].to_vec();
        recent.sort_unstable();
        recent.dedup();
        for id in recent {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit = if *logit > 0.0 { *logit / self.penalty } else { *logit * self.penalty };
            }
        }
    }
}

fn candidates(logits: &[f32]) -> impl Iterator<Item = Candidate> {
    let all = logits.iter().zip(0..).map(|(&logit, id)| Candidate { logit, id });
    all.filter(|candidate| candidate.logit.is_finite())
}

/// SplitMix64: a few lines, and good enough to choose words.
struct Random(u64);

impl Random {
    /// From 0 to below 1.
    #[expect(clippy::cast_precision_loss, reason = "24 bits are what an f32 holds")]
    fn fraction(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u32 << 24) as f32
    }
}
