//! The likeliest of several answers.

use super::*;

/// One of some answers. A beginning may be allowed that none of them has.
struct OneOf<'a> {
    answers: &'a [&'a [u8]],
    astray: &'a [u8],
    /// An answer, and how much less likely it is than the model says.
    doubted: (&'a [u8], f32),
    said: Vec<u8>,
}

impl<'a> OneOf<'a> {
    fn new(answers: &'a [&'a [u8]]) -> Self {
        Self { answers, astray: b"", doubted: (b"", 0.0), said: Vec::new() }
    }
}

impl Constraint for OneOf<'_> {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        let said = [&self.said[..], bytes].concat();
        self.astray.starts_with(&said) || self.answers.iter().any(|answer| answer.starts_with(&said))
    }

    fn doubt(&mut self, bytes: &[u8]) -> f32 {
        let (answer, doubt) = self.doubted;
        if [&self.said[..], bytes].concat() == answer { doubt } else { 0.0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.said.extend_from_slice(bytes);
    }

    fn complete(&self) -> bool {
        self.answers.iter().any(|answer| *answer == self.said)
    }

    fn restart(&mut self) {
        self.said.clear();
    }
}

/// How likely the model says `answer`, as a natural logarithm.
fn likelihood(engine: &Engine, prompt: &[u32], answer: &[u8]) -> f32 {
    let mut tokens = prompt.to_vec();
    let mut sum = 0.0;
    for id in engine.tokens().encode(str::from_utf8(answer).unwrap(), false) {
        let cache = &mut Cache::new(&engine.network.shape);
        let logits = logits(&engine.network, cache, &tokens, 64);
        let logits = &logits[..engine.tokens().len()];
        let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        sum += logits[id as usize] - top - logits.iter().map(|logit| (logit - top).exp()).sum::<f32>().ln();
        tokens.push(id);
    }
    sum
}

const ANSWERS: [&[u8]; 8] = [b"ax.", b"ay!", b"bx?", b"by;", b"cx:", b"cy,", b"dx", b"dyes"];

#[test]
fn the_likeliest_answer_is_found() {
    let engine = open(&Made::new("llama"));
    let mut astray = 0;
    for length in 5..25 {
        let prompt = text(length);
        let plain =
            Job { sampling: job(Vec::new(), None).sampling, prompt: prompt.clone(), ..Job::default() };
        let first = run(&engine, &plain, Some(&mut OneOf::new(&ANSWERS))).0;
        let (said, done) = run(&engine, &Job { tries: 20, ..plain }, Some(&mut OneOf::new(&ANSWERS)));
        assert_eq!((done.end, done.completion as usize), (End::Complete, said.len()));
        let all = ANSWERS.map(|answer| likelihood(&engine, &prompt, answer));
        let best = all.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let found = likelihood(&engine, &prompt, said.as_bytes());
        assert!(best - found < 1e-2, "{said}: {found}, {all:?}");
        astray += usize::from(said != first);
    }
    assert!(astray > 0, "the likeliest first token was the start of the likeliest answer each time");
}

#[test]
fn an_answer_that_is_doubted_yields_to_others() {
    let engine = open(&Made::new("llama"));
    let prompt = text(9);
    let job = Job { tries: 20, ..job(prompt.clone(), None) };
    let mut ranked = ANSWERS.map(|answer| (answer, likelihood(&engine, &prompt, answer)));
    ranked.sort_by(|left, right| right.1.total_cmp(&left.1));
    let [(first, best), (second, next), ..] = ranked;
    for (doubt, expected) in [(0.0, first), ((best - next) / 2.0, first), (best - next + 0.1, second)] {
        let mut constraint = OneOf { doubted: (first, doubt), ..OneOf::new(&ANSWERS) };
        assert_eq!(run(&engine, &job, Some(&mut constraint)).0.as_bytes(), expected, "{doubt}");
    }
}

#[test]
fn what_leads_nowhere_is_left() {
    let engine = open(&Made::new("llama"));
    let prompt = text(9);
    // The letter that the model likes best leads nowhere, unless an answer begins with it.
    let letters = (b'e'..=b'z').map(|letter| [letter]);
    let astray = letters.max_by(|left, right| {
        likelihood(&engine, &prompt, left).total_cmp(&likelihood(&engine, &prompt, right))
    });
    let astray = astray.unwrap();
    let mut constraint = OneOf { astray: &astray, ..OneOf::new(&ANSWERS) };
    let job = |tries| Job { tries, ..job(prompt.clone(), None) };
    assert_eq!(run(&engine, &job(1), Some(&mut constraint)).1.end, End::Stuck);
    constraint.restart();
    let (said, done) = run(&engine, &job(10), Some(&mut constraint));
    assert!(ANSWERS.contains(&said.as_bytes()) && done.end == End::Complete, "{said:?} {done:?}");
    assert_eq!(run(&engine, &job(10), Some(&mut OneOf::new(&[]))).1.end, End::Stuck);
}

#[test]
fn an_answer_that_is_cut_off_is_told_and_a_cancelled_one_ends() {
    let engine = open(&Made::new("llama"));
    let mut job = Job { tries: 3, ..job(text(9), Some("a")) };
    job.sampling.max_tokens = Some(2);
    let (said, done) = run(&engine, &job, Some(&mut OneOf::new(&[b"long"])));
    assert_eq!((&*said, done.end, done.completion), ("lo", End::Length, 2));
    let cancel = Cancel::new();
    let sink = &mut |piece: Piece<'_>| {
        assert!(matches!(piece, Piece::Read { .. }));
        cancel.cancel();
        ControlFlow::Continue(())
    };
    let done = engine.generate(&job, &cancel, Some(&mut OneOf::new(&ANSWERS)), sink).unwrap();
    assert_eq!(done.end, End::Cancelled);
    // What was read for it serves the next turn.
    assert_eq!(engine.cached("a", &job.prompt), 9);
}
