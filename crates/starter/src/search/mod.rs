//! Best-first decoding: finds the likeliest of several answers that a constraint allows.
//!
//! The likeliest token can lead to where no good answer is: to what the constraint forbids, or to words of which each is
//! less likely than the last. So tokens that were nearly as likely are kept as beginnings of other candidates, and the
//! likeliest candidates are followed to their ends. For most answers the model has no close second choice, and one
//! candidate is all.

#[cfg(test)]
mod tests;

use kontekst_engine::{DecodeError, Decoder, FinishReason, Vocabulary};

use crate::byte_rules::Restart;

/// Tokens are kept that are up to this much less likely than the best one, as a natural logarithm: 55 times.
const KEPT_WITHIN: f32 = 4.0;

/// Limits on a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most candidates that are followed.
    pub candidates: usize,
    /// The most tokens of an answer.
    pub tokens: usize,
}

/// The likeliest answer.
#[derive(Debug)]
pub(crate) struct Found {
    pub tokens: Vec<u32>,
    pub finish: FinishReason,
}

/// The beginning of an answer, or all of it.
struct Candidate {
    tokens: Vec<u32>,
    /// The natural logarithm of how likely the model takes exactly this answer to be.
    likelihood: f32,
}

/// Searches for the likeliest answer to the prompt that `decoder` has read. Returns `None` if none of the candidates
/// leads to an answer that the constraint allows.
///
/// # Errors
///
/// [`DecodeError`] if a step of the decoder is cancelled or fails.
pub(crate) fn likeliest_answer(
    decoder: &mut Decoder<'_>,
    constraint: &mut dyn Restart,
    limits: Limits,
) -> Result<Option<Found>, DecodeError> {
    let after_prompt = decoder.logits().to_vec();
    let max_tokens = limits.tokens.min(decoder.room());
    let open = vec![Candidate { tokens: Vec::new(), likelihood: 0.0 }];
    let mut search =
        Search { decoder, constraint, after_prompt, max_tokens, threshold: f32::NEG_INFINITY, open };
    let mut best: Option<(Candidate, FinishReason)> = None;
    for _ in 0..limits.candidates {
        let Some(candidate) = search.take_likeliest() else { break };
        // An answer that was cut off is better than none, and worse than any other.
        let whole = best.as_ref().filter(|(_, finish)| *finish != FinishReason::Length);
        search.threshold = whole.map_or(f32::NEG_INFINITY, |(best, _)| best.likelihood);
        if candidate.likelihood <= search.threshold {
            break;
        }
        match search.follow(candidate)? {
            Some((_, FinishReason::Length)) if best.is_some() => {}
            Some(answer) => best = Some(answer),
            None => {}
        }
    }
    Ok(best.map(|(candidate, finish)| Found { tokens: candidate.tokens, finish }))
}

struct Search<'a, 'b> {
    decoder: &'a mut Decoder<'b>,
    constraint: &'a mut dyn Restart,
    /// The logits after the prompt.
    after_prompt: Vec<f32>,
    max_tokens: usize,
    /// The likelihood of the best answer so far.
    threshold: f32,
    /// Candidates that have not been followed.
    open: Vec<Candidate>,
}

impl Search<'_, '_> {
    fn take_likeliest(&mut self) -> Option<Candidate> {
        let all = self.open.iter().enumerate();
        let (at, _) = all.max_by(|(_, left), (_, right)| left.likelihood.total_cmp(&right.likelihood))?;
        Some(self.open.swap_remove(at))
    }

    /// Continues `candidate` with the likeliest token each time, and keeps the other tokens that were nearly as likely.
    /// Returns `None` if it becomes less likely than what was found, or the constraint allows nothing more.
    fn follow(&mut self, mut candidate: Candidate) -> Result<Option<(Candidate, FinishReason)>, DecodeError> {
        let vocabulary = self.decoder.vocabulary();
        self.constraint.restart();
        for &id in &candidate.tokens {
            self.constraint.push(vocabulary.bytes(id));
        }
        loop {
            let finish = match candidate.tokens.last() {
                Some(&last) if vocabulary.is_end(last) => Some(FinishReason::EndOfAnswer),
                Some(_) if self.constraint.is_complete() => Some(FinishReason::ConstraintComplete),
                Some(_) if candidate.tokens.len() >= self.max_tokens => Some(FinishReason::Length),
                _ => None,
            };
            if let Some(finish) = finish {
                return Ok(Some((candidate, finish)));
            }
            self.read(&candidate.tokens)?;
            let next = self.choose(&candidate);
            let Some((id, likelihood)) = next.filter(|(_, likelihood)| *likelihood > self.threshold) else {
                return Ok(None);
            };
            candidate.likelihood = likelihood;
            candidate.tokens.push(id);
            self.constraint.push(vocabulary.bytes(id));
        }
    }

    /// Has the decoder read `answer`. What it read for another candidate stays where both begin alike.
    fn read(&mut self, answer: &[u32]) -> Result<(), DecodeError> {
        if answer.is_empty() {
            return Ok(());
        }
        let read = self.decoder.answer().iter().zip(answer);
        let common = read.take_while(|(left, right)| left == right).count().min(answer.len() - 1);
        self.decoder.rewind(common);
        self.decoder.step(&answer[common..])
    }

    /// Chooses the likeliest next token, and returns it with the likelihood of the candidate that it makes. Tokens that
    /// are nearly as likely become candidates of their own.
    fn choose(&mut self, candidate: &Candidate) -> Option<(u32, f32)> {
        let vocabulary = self.decoder.vocabulary();
        let is_start = candidate.tokens.is_empty();
        let logits = if is_start { &self.after_prompt[..] } else { self.decoder.logits() };
        let mut ranked = ranked(logits).into_iter();
        let first = ranked.find(|(id, _)| allows(self.constraint, vocabulary, *id))?;
        let near = ranked
            .take_while(|(_, share)| share + KEPT_WITHIN >= first.1)
            .filter(|(id, _)| allows(self.constraint, vocabulary, *id));
        for (id, share) in near {
            let likelihood = candidate.likelihood + share;
            if likelihood > self.threshold {
                let tokens = candidate.tokens.iter().copied().chain([id]).collect();
                self.open.push(Candidate { tokens, likelihood });
            }
        }
        Some((first.0, candidate.likelihood + first.1))
    }
}

fn allows(constraint: &mut dyn Restart, vocabulary: &Vocabulary, id: u32) -> bool {
    match vocabulary.bytes(id) {
        _ if vocabulary.is_end(id) => constraint.may_end(),
        bytes => !bytes.is_empty() && constraint.allows(bytes),
    }
}

/// Returns tokens and the natural logarithms of their probabilities, the likeliest first. Of two alike, the lower id
/// comes first.
fn ranked(logits: &[f32]) -> Vec<(u32, f32)> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let whole = top + logits.iter().map(|logit| (logit - top).exp()).sum::<f32>().ln();
    let mut ranked: Vec<(u32, f32)> = (0..).zip(logits.iter().map(|logit| logit - whole)).collect();
    ranked.retain(|(_, share)| share.is_finite());
    ranked.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
    ranked
}
