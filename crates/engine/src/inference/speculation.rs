//! Guesses the next tokens of an answer, so that several are read at once.
//!
//! An answer often repeats what stands before it: a file that is written anew with a small change, a name, a quotation. What
//! followed the last tokens where they stood before is read together with the last token, which takes less time than one token
//! after the other. The sampler chooses as always, from the logits after each token. As long as it chooses what was guessed,
//! the logits after that are there already, and they are the same to the last bit as without guesses. So is the answer.
//!
//! Guesses that are refused cost time. What they may cost altogether is limited by a credit, to which every accepted guess adds
//! what it has saved.

use crate::inference::decoder::{DecodeError, Decoder, MOST_AT_ONCE};

/// The fewest tokens that must be as before for a guess.
const LEAST_MATCH: usize = 2;
/// Longer matches say no more.
const LONGEST_MATCH: usize = 16;

/// Time that guesses add to reading one token, in units of that: for any, and for each. Measured with Qwen2.5-Coder 0.5B in
/// Q4_K_M, see `docs/speed.md`.
const PRICE_OF_ANY: f32 = 0.25;
const PRICE_OF_EACH: f32 = 0.15;
/// Time that guesses may take for each token that is read without any.
const ALLOWANCE: f32 = 0.015;
/// The credit at the beginning, and the most that it grows to.
const FIRST_CREDIT: f32 = 1.0;
const MOST_CREDIT: f32 = 3.0;

/// The guesses of one answer.
pub(crate) struct Speculation {
    /// The tokens at the end of what the decoder has read that are guesses.
    ahead: usize,
    /// One past the place of the last guess that was accepted, where it stood before.
    source: usize,
    credit: f32,
    pub guessed: u32,
    pub accepted: u32,
}

/// A place that the last tokens had before.
#[derive(Clone, Copy)]
struct Match {
    /// The place of what followed.
    next: usize,
    length: usize,
}

impl Speculation {
    pub(crate) fn new() -> Self {
        Self { ahead: 0, source: 0, credit: FIRST_CREDIT, guessed: 0, accepted: 0 }
    }

    /// Guesses nothing.
    pub(crate) fn none() -> Self {
        Self { credit: f32::NEG_INFINITY, ..Self::new() }
    }

    /// Returns the tokens so far, and the logits of the next one.
    pub(crate) fn logits<'a>(&self, decoder: &'a mut Decoder<'_>) -> (&'a [u32], &'a mut [f32]) {
        decoder.before_last(self.ahead)
    }

    /// Reads `token`, after which at most `room` tokens may follow, unless it was guessed and therefore is read already.
    ///
    /// # Errors
    ///
    /// As [`Decoder::step`].
    pub(crate) fn step(
        &mut self,
        decoder: &mut Decoder<'_>,
        token: u32,
        room: usize,
    ) -> Result<(), DecodeError> {
        if self.ahead > 0 && decoder.tokens()[decoder.tokens().len() - self.ahead] == token {
            self.ahead -= 1;
            self.source += 1;
            self.accepted += 1;
            self.credit = (self.credit + 1.0).min(MOST_CREDIT);
            return Ok(());
        }
        self.finish(decoder);
        let mut tokens = vec![token];
        tokens.extend(self.guesses(decoder, token, room.saturating_sub(1)));
        decoder.step_each(&tokens)?;
        self.ahead = tokens.len() - 1;
        Ok(())
    }

    /// Drops the guesses that are read and not accepted.
    pub(crate) fn finish(&mut self, decoder: &mut Decoder<'_>) {
        decoder.drop_last(self.ahead);
        self.ahead = 0;
    }

    /// Guesses at most `most` tokens after `token`.
    fn guesses(&mut self, decoder: &Decoder<'_>, token: u32, most: usize) -> Vec<u32> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is small, and below zero is none"
        )]
        let affordable = ((self.credit - PRICE_OF_ANY) / PRICE_OF_EACH) as usize;
        let most = most.min(affordable).min(MOST_AT_ONCE - 1);
        let found = if most == 0 { None } else { self.longest_match(decoder.tokens(), token) };
        let Some(found) = found else {
            self.credit = (self.credit + ALLOWANCE).min(MOST_CREDIT);
            return Vec::new();
        };
        let vocabulary = decoder.vocabulary();
        let following = decoder.tokens()[found.next..].iter().copied().chain([token]);
        // The logits after the end of an answer are of no use.
        let guesses = following.take_while(|&id| !vocabulary.is_end(id)).take(most.min(found.length));
        let guesses: Vec<u32> = guesses.collect();
        if guesses.is_empty() {
            return guesses;
        }
        self.source = found.next;
        self.guessed += u32::try_from(guesses.len()).unwrap_or(u32::MAX);
        #[expect(clippy::cast_precision_loss, reason = "there are few")]
        let price = PRICE_OF_ANY + guesses.len() as f32 * PRICE_OF_EACH;
        self.credit -= price;
        guesses
    }

    /// Finds where `token` stood before with most of the same tokens before it. Of several such places it is the first one
    /// behind the last guess that was accepted, or else the last one.
    fn longest_match(&self, before: &[u32], token: u32) -> Option<Match> {
        let mut best: Option<Match> = None;
        for (at, _) in before.iter().enumerate().rev().filter(|(_, id)| **id == token) {
            let same = before[..at].iter().rev().zip(before.iter().rev());
            let length = 1 + same.take(LONGEST_MATCH - 1).take_while(|(left, right)| left == right).count();
            let is_longer = best.is_none_or(|best| length > best.length);
            let is_nearer = best.is_some_and(|best| length == best.length) && at >= self.source;
            if is_longer || is_nearer {
                best = Some(Match { next: at + 1, length });
            }
        }
        best.filter(|best| best.length >= LEAST_MATCH)
    }
}
