//! Searches with a small random model, whose likeliest tokens often lead astray.

use std::ops::ControlFlow;

use kontekst_engine::{Constraint, Engine, Limits as EngineLimits, Prompt, random_model::RandomModel};

use super::*;

/// Allows a few answers. A beginning may be allowed that none of them has.
struct OneOf<'a> {
    answers: &'a [&'a [u8]],
    astray: &'a [u8],
    written: Vec<u8>,
}

impl<'a> OneOf<'a> {
    fn new(answers: &'a [&'a [u8]]) -> Self {
        Self { answers, astray: b"", written: Vec::new() }
    }
}

impl Constraint for OneOf<'_> {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        let written = [&self.written[..], bytes].concat();
        self.astray.starts_with(&written) || self.answers.iter().any(|answer| answer.starts_with(&written))
    }

    fn push(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
    }

    fn is_complete(&self) -> bool {
        self.answers.iter().any(|answer| *answer == self.written)
    }
}

impl Restart for OneOf<'_> {
    fn restart(&mut self) {
        self.written.clear();
    }
}

fn open() -> Engine {
    Engine::from_bytes(RandomModel::new("llama").bytes().leak(), EngineLimits::default()).unwrap()
}

fn text(count: u32) -> Vec<u32> {
    (0..count).map(|number| number * 37 % 200 + 32).collect()
}

/// Reads a prompt and runs `work` with the decoder.
fn decode<T>(
    engine: &Engine,
    tokens: &[u32],
    work: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> T {
    let prompt = Prompt { tokens, session: None };
    engine.decode(prompt, &|| false, &mut |_| ControlFlow::Continue(()), work).unwrap()
}

/// The text of the answer that is found, and why it ended.
fn search(
    engine: &Engine,
    prompt: &[u32],
    constraint: &mut OneOf<'_>,
    limits: Limits,
) -> Option<(String, FinishReason)> {
    let found = decode(engine, prompt, |decoder| likeliest_answer(decoder, constraint, limits))?;
    let bytes: Vec<u8> = found.tokens.iter().flat_map(|&id| engine.vocabulary().bytes(id)).copied().collect();
    assert_eq!(bytes.len(), found.tokens.len(), "each token is a byte");
    Some((String::from_utf8(bytes).unwrap(), found.finish))
}

/// Returns how likely the model takes `answer` to be, as a natural logarithm.
fn likelihood(engine: &Engine, prompt: &[u32], answer: &[u8]) -> f32 {
    let answer = engine.vocabulary().encode(str::from_utf8(answer).unwrap(), false);
    decode(engine, prompt, |decoder| {
        let mut sum = 0.0;
        for id in answer {
            let logits = decoder.logits();
            let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            sum +=
                logits[id as usize] - top - logits.iter().map(|logit| (logit - top).exp()).sum::<f32>().ln();
            decoder.step(&[id])?;
        }
        Ok(sum)
    })
}

const ANSWERS: [&[u8]; 8] = [b"ax.", b"ay!", b"bx?", b"by;", b"cx:", b"cy,", b"dx", b"dyes"];

fn candidates(candidates: usize) -> Limits {
    Limits { candidates, tokens: 12 }
}

#[test]
fn the_likeliest_answer_is_found() {
    let engine = open();
    let mut astray = 0;
    for length in 5..25 {
        let prompt = text(length);
        // With one candidate, the likeliest token is taken each time.
        let (first, _) = search(&engine, &prompt, &mut OneOf::new(&ANSWERS), candidates(1)).unwrap();
        let (answer, finish) = search(&engine, &prompt, &mut OneOf::new(&ANSWERS), candidates(20)).unwrap();
        assert_eq!(finish, FinishReason::ConstraintComplete);
        let all = ANSWERS.map(|answer| likelihood(&engine, &prompt, answer));
        let best = all.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let found = likelihood(&engine, &prompt, answer.as_bytes());
        assert!(best - found < 1e-2, "{answer}: {found}, {all:?}");
        astray += usize::from(answer != first);
    }
    assert!(astray > 0, "the likeliest first token was the start of the likeliest answer each time");
}

#[test]
fn what_leads_nowhere_is_left() {
    let engine = open();
    let prompt = text(9);
    // The letter that the model likes best leads nowhere, unless an answer begins with it.
    let letters = (b'e'..=b'z').map(|letter| [letter]);
    let astray = letters.max_by(|left, right| {
        likelihood(&engine, &prompt, left).total_cmp(&likelihood(&engine, &prompt, right))
    });
    let astray = astray.unwrap();
    let mut constraint = OneOf { astray: &astray, ..OneOf::new(&ANSWERS) };
    assert_eq!(search(&engine, &prompt, &mut constraint, candidates(1)), None);
    let (answer, finish) = search(&engine, &prompt, &mut constraint, candidates(10)).unwrap();
    assert!(ANSWERS.contains(&answer.as_bytes()) && finish == FinishReason::ConstraintComplete, "{answer}");
    assert_eq!(search(&engine, &prompt, &mut OneOf::new(&[]), candidates(10)), None);
}

#[test]
fn an_answer_that_is_cut_off_says_so_and_a_cancelled_search_ends() {
    let engine = open();
    let tokens = text(9);
    let limits = Limits { candidates: 3, tokens: 2 };
    let found = search(&engine, &tokens, &mut OneOf::new(&[b"long"]), limits);
    assert_eq!(found, Some(("lo".to_owned(), FinishReason::Length)));
    let cancelled = std::cell::Cell::new(false);
    let prompt = Prompt { tokens: &tokens, session: Some("a") };
    let on_progress = &mut |_| {
        cancelled.set(true);
        ControlFlow::Continue(())
    };
    let result = engine.decode(prompt, &|| cancelled.get(), on_progress, |decoder| {
        likeliest_answer(decoder, &mut OneOf::new(&ANSWERS), limits)
    });
    assert!(matches!(result, Err(DecodeError::Cancelled)), "{result:?}");
    // What was read for it serves the next turn.
    assert_eq!(engine.cached_tokens("a", &tokens), 9);
}
