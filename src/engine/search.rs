//! The likeliest of several answers: where the model is in doubt, its other choices are followed too.
//!
//! A token that looked best can lead where no good answer is: into what the constraint forbids, or into words of which
//! each is less likely than the last. So choices that were nearly taken are kept, and the likeliest of them are
//! followed to their ends. Most answers leave no doubt and cost one look.

use super::{
    EngineError,
    cache::Cache,
    generate::{Constraint, End, Run},
    tokens::Characters,
};

/// How much less likely than the choice that is taken another one may be to be kept, as a natural logarithm: 55 times.
const NEAR: f32 = 4.0;

/// The beginning of an answer, or all of it.
struct Path {
    tokens: Vec<u32>,
    /// The natural logarithm of how likely the model says exactly this, less what the constraint doubts of it.
    likelihood: f32,
}

/// What came of following a path.
enum Followed {
    Answer(Path, End),
    /// Nothing good: it is less likely than another answer, or the constraint ends it.
    Nothing,
    Cancelled,
}

impl Run<'_> {
    /// Writes the likeliest answer that the constraint allows, of at most `tries` that are looked at, `logits` being
    /// what follows the prompt. It is handed on when it is whole.
    pub(super) fn search(
        &mut self,
        cache: &mut Cache,
        logits: &[f32],
        constraint: &mut dyn Constraint,
        completion: &mut u32,
    ) -> Result<End, EngineError> {
        let prompt = cache.tokens.len();
        let mut best: Option<(Path, End)> = None;
        let mut open = vec![Path { tokens: Vec::new(), likelihood: 0.0 }];
        for _ in 0..self.job.tries {
            let Some(path) = likeliest(&mut open) else { break };
            // An answer that was cut off is better than none, and worse than any other.
            let whole = best.as_ref().filter(|(_, end)| *end != End::Length);
            let bar = whole.map_or(f32::NEG_INFINITY, |(path, _)| path.likelihood);
            if path.likelihood <= bar {
                break;
            }
            let mut walk = Walk { prompt, first: logits, bar, open: &mut open };
            match self.follow(cache, path, constraint, &mut walk)? {
                Followed::Answer(_, End::Length) if best.is_some() => {}
                Followed::Answer(path, end) => best = Some((path, end)),
                Followed::Nothing => {}
                Followed::Cancelled => return Ok(End::Cancelled),
            }
        }
        let Some((path, end)) = best else { return Ok(End::Stuck) };
        *completion = u32::try_from(path.tokens.len()).unwrap_or(u32::MAX);
        let mut characters = Characters::default();
        for &id in path.tokens.iter().filter(|&&id| !self.engine.tokens.ends(id)) {
            if self.say(id, &mut characters).is_break() {
                return Ok(End::Sink);
            }
        }
        Ok(self.held_back(&mut characters).unwrap_or(end))
    }

    /// Goes on with `path`, the likeliest token each time, and keeps the choices that were nearly taken.
    fn follow(
        &self,
        cache: &mut Cache,
        mut path: Path,
        constraint: &mut dyn Constraint,
        walk: &mut Walk<'_>,
    ) -> Result<Followed, EngineError> {
        let tokens = &self.engine.tokens;
        let most = self.most(walk.prompt);
        constraint.restart();
        for &id in &path.tokens {
            constraint.push(tokens.bytes(id));
        }
        loop {
            let read;
            let logits = match path.tokens.last() {
                None => walk.first,
                Some(&last) if tokens.ends(last) => return Ok(Followed::Answer(path, End::Stop)),
                Some(_) if constraint.complete() => return Ok(Followed::Answer(path, End::Complete)),
                Some(_) if path.tokens.len() >= most => return Ok(Followed::Answer(path, End::Length)),
                Some(_) => {
                    // What was read for another path is read on where both are the same.
                    let known = cache.common_behind(walk.prompt, &path.tokens).min(path.tokens.len() - 1);
                    cache.rewind(walk.prompt + known);
                    match self.step(cache, &path.tokens[known..], true)? {
                        Ok(logits) => read = logits,
                        Err(_) => return Ok(Followed::Cancelled),
                    }
                    &read
                }
            };
            let next = self.choose(logits, &path, constraint, walk);
            let Some((id, likelihood)) = next.filter(|(_, likelihood)| *likelihood > walk.bar) else {
                return Ok(Followed::Nothing);
            };
            path.likelihood = likelihood;
            path.tokens.push(id);
            constraint.push(tokens.bytes(id));
        }
    }

    /// The likeliest token that may come next, and how likely the path is with it. Those that are nearly as likely
    /// are kept.
    fn choose(
        &self,
        logits: &[f32],
        path: &Path,
        constraint: &mut dyn Constraint,
        walk: &mut Walk<'_>,
    ) -> Option<(u32, f32)> {
        let tokens = &self.engine.tokens;
        let mut allows = |id| match tokens.bytes(id) {
            _ if tokens.ends(id) => constraint.may_end(),
            bytes => !bytes.is_empty() && constraint.allows(bytes),
        };
        let mut ranked = ranked(&logits[..tokens.len().min(logits.len())]).into_iter();
        let first = ranked.find(|(id, _)| allows(*id))?;
        let near = ranked.take_while(|(_, share)| share + NEAR >= first.1).filter(|(id, _)| allows(*id));
        let near: Vec<(u32, f32)> = [first].into_iter().chain(near).collect();
        let likelihood = |(id, share)| {
            let doubt = if tokens.ends(id) { 0.0 } else { constraint.doubt(tokens.bytes(id)) };
            (id, path.likelihood + share - doubt)
        };
        let mut near: Vec<(u32, f32)> = near.into_iter().map(likelihood).collect();
        // Of two alike, what the model takes to be likelier.
        let best = (0..near.len()).rev().max_by(|&left, &right| near[left].1.total_cmp(&near[right].1))?;
        let best = near.remove(best);
        for (id, likelihood) in near.into_iter().filter(|(_, likelihood)| *likelihood > walk.bar) {
            let tokens = path.tokens.iter().copied().chain([id]).collect();
            walk.open.push(Path { tokens, likelihood });
        }
        Some(best)
    }
}

/// What one path is followed with.
struct Walk<'a> {
    /// Tokens of the prompt.
    prompt: usize,
    /// What may follow the prompt.
    first: &'a [f32],
    /// How likely an answer must be to be worth its end.
    bar: f32,
    /// Beginnings that have not been followed.
    open: &'a mut Vec<Path>,
}

fn likeliest(open: &mut Vec<Path>) -> Option<Path> {
    let all = open.iter().enumerate();
    let (at, _) = all.max_by(|(_, left), (_, right)| left.likelihood.total_cmp(&right.likelihood))?;
    Some(open.swap_remove(at))
}

/// Tokens and the natural logarithms of their shares, the likeliest first; of two alike, the lower number.
fn ranked(logits: &[f32]) -> Vec<(u32, f32)> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let whole = top + logits.iter().map(|logit| (logit - top).exp()).sum::<f32>().ln();
    let mut ranked: Vec<(u32, f32)> = (0..).zip(logits.iter().map(|logit| logit - whole)).collect();
    ranked.retain(|(_, share)| share.is_finite());
    ranked.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
    ranked
}
