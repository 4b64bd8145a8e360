//! The engine on small models with random weights, one for each architecture.

mod hostile;
mod made;
mod search;

use std::ops::ControlFlow;

use candle_core::quantized::GgmlDType;

use self::made::Made;
pub use self::made::letter;
use super::{
    ARCHITECTURES, Constraint, Done, End, Engine, Job, Limits, Piece, cache::Cache, network::Network,
};
use crate::core::{Cancel, Sampling};

fn open(made: &Made) -> Engine {
    Engine::from_bytes(made.bytes().leak(), Limits::default()).unwrap()
}

/// As one that is not small, and as one that is.
fn both(made: &Made) -> [Engine; 2] {
    let open =
        |small| Engine::from_bytes(made.bytes().leak(), Limits { small, ..Limits::default() }).unwrap();
    [open(0), open(u64::MAX)]
}

/// What comes after `tokens`, read in steps of these sizes.
fn logits(network: &Network, cache: &mut Cache, tokens: &[u32], step: usize) -> Vec<f32> {
    let mut last = Vec::new();
    for step in tokens.chunks(step) {
        last = network.read_tokens(cache, step, true, &|| false).unwrap().ok().unwrap();
    }
    last
}

#[track_caller]
fn agree(left: &[f32], right: &[f32], what: &str) {
    assert_eq!(left.len(), right.len());
    assert!(left.iter().all(|number| number.is_finite()), "{what}");
    let scale = left.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let apart = left.iter().zip(right).fold(0.0_f32, |most, (left, right)| most.max((left - right).abs()));
    assert!(scale > 0.1 && apart < 0.05 * scale, "{what}: {apart} apart, at most {scale}");
}

fn text(count: u32) -> Vec<u32> {
    (0..count).map(|number| number * 37 % 200 + 32).collect()
}

#[test]
fn a_prompt_means_the_same_in_one_step_in_many_and_token_by_token() {
    for name in ARCHITECTURES {
        let tokens = text(83);
        for engine in both(&Made::new(name)) {
            let read = |step| logits(&engine.network, &mut Cache::new(&engine.network.shape), &tokens, step);
            let whole = read(83);
            for step in [1, 7, 64] {
                agree(&whole, &read(step), &format!("{name} in steps of {step}"));
            }
        }
    }
}

#[test]
fn going_back_is_like_starting_anew() {
    for name in ARCHITECTURES {
        let engine = open(&Made::new(name));
        let network = &engine.network;
        let tokens = text(60);
        let fresh = logits(network, &mut Cache::new(&network.shape), &tokens, 64);
        let mut cache = Cache::new(&network.shape);
        // The same beginning, then something else that must leave no trace.
        let mut other = tokens[..21].to_vec();
        other.extend((0..50).map(|number| number * 11 % 90 + 100));
        logits(network, &mut cache, &other, 64);
        assert_eq!(cache.common(&tokens), 21);
        cache.rewind(21);
        agree(&fresh, &logits(network, &mut cache, &tokens[21..], 64), name);
    }
}

#[test]
fn every_kind_of_weights_says_about_the_same() {
    for name in ["llama", "phi3"] {
        let mut made = Made::new(name);
        let whole = |made: &Made| {
            let read = |engine: Engine| {
                logits(&engine.network, &mut Cache::new(&engine.network.shape), &text(30), 64)
            };
            let [large, small] = both(made).map(read);
            // The large one rounds what it multiplies to eight bits.
            agree(&small, &large, &format!("{name} with {:?}", made.weights));
            large
        };
        made.weights = GgmlDType::F32;
        let exact = whole(&made);
        let mixed = [(GgmlDType::Q8_0, Some(GgmlDType::Q6K))];
        for (weights, mixed) in made::KINDS.iter().map(|kind| (*kind, None)).chain(mixed) {
            (made.weights, made.mixed) = (weights, mixed);
            let found = whole(&made);
            let dot =
                |left: &[f32], right: &[f32]| -> f32 { left.iter().zip(right).map(|(l, r)| l * r).sum() };
            let alike = dot(&exact, &found) / (dot(&exact, &exact) * dot(&found, &found)).sqrt();
            // Four bits say less than eight.
            let least = if weights.type_size() * 8 < 6 * weights.block_size() { 0.8 } else { 0.95 };
            assert!(alike > least, "{name} with {weights:?} and {mixed:?}: {alike}");
        }
    }
}

/// What a job said, and how it ended.
fn run(engine: &Engine, job: &Job, constraint: Option<&mut dyn Constraint>) -> (String, Done) {
    let mut said = String::new();
    let done = engine.generate(job, &Cancel::new(), constraint, &mut |piece| {
        if let Piece::Text(text) = piece {
            said.push_str(text);
        }
        ControlFlow::Continue(())
    });
    (said, done.unwrap())
}

fn job(prompt: Vec<u32>, session: Option<&str>) -> Job {
    let sampling = Sampling { temperature: Some(0.0), max_tokens: Some(12), ..Sampling::default() };
    Job { prompt, session: session.map(str::to_owned), sampling, seed: Some(7), tries: 1 }
}

#[test]
fn the_next_turn_reads_only_what_is_new() {
    let engine = open(&Made::new("llama"));
    let (_, first) = run(&engine, &job(text(100), Some("a")), None);
    assert_eq!((first.prompt, first.cached), (100, 0));
    let mut longer = text(130);
    assert_eq!(engine.cached("a", &longer), 100);
    let (said, second) = run(&engine, &job(longer.clone(), Some("a")), None);
    assert_eq!((second.prompt, second.cached), (130, 100));
    assert_eq!(run(&engine, &job(longer.clone(), None), None).0, said);
    // A changed message: what stands before it is kept.
    longer[90] += 1;
    let (said, third) = run(&engine, &job(longer.clone(), Some("a")), None);
    assert_eq!(third.cached, 90);
    assert_eq!(run(&engine, &job(longer.clone(), None), None).0, said);
    // The same again: one token must be read to know what comes next.
    assert_eq!(run(&engine, &job(longer, Some("a")), None).1.cached, 129);
    engine.forget("a");
    assert_eq!(engine.kept(), 0);
}

#[test]
fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
    let bytes = Made::new("qwen2").bytes().leak();
    let engine = Engine::from_bytes(bytes, Limits::default()).unwrap();
    run(&engine, &job(text(200), Some("one")), None);
    let one = engine.kept();
    let engine = Engine::from_bytes(bytes, Limits { kept: 2 * one + one / 2, ..Limits::default() }).unwrap();
    // Different from its first token, so that none has a part in another.
    let other = |first: u32| [vec![first], text(199)].concat();
    let sessions = [("one", other(1)), ("two", other(2)), ("three", other(3))];
    for (session, prompt) in &sessions {
        run(&engine, &job(prompt.clone(), Some(session)), None);
        assert!(engine.kept() <= 2 * one + one / 2);
    }
    let cached = sessions.map(|(session, prompt)| engine.cached(session, &prompt));
    assert_eq!(cached, [0, 200, 200]);
}

#[test]
fn a_new_session_begins_with_what_another_has_read() {
    let engine = open(&Made::new("llama"));
    let mut prompt = text(200);
    run(&engine, &job(prompt.clone(), Some("one")), None);
    prompt[150] += 1;
    assert_eq!(engine.cached("two", &prompt), 150);
    let (said, done) = run(&engine, &job(prompt.clone(), Some("two")), None);
    assert_eq!(done.cached, 150);
    assert_eq!(run(&engine, &job(prompt, None), None).0, said);
    assert_eq!(engine.cached("one", &text(200)), 200, "the other still has its own");
}

#[test]
fn a_seed_chooses_the_same_again() {
    let engine = open(&Made::new("qwen3"));
    let mut job = job(text(20), None);
    job.sampling.temperature = Some(5.0);
    job.sampling.max_tokens = Some(40);
    job.sampling.repeat_penalty = Some(1.3);
    let (said, done) = run(&engine, &job, None);
    assert_eq!(run(&engine, &job, None).0, said);
    assert!(done.completion > 0);
    // What another seed chooses differs sooner or later.
    let others: Vec<_> =
        (8..40).map(|seed| run(&engine, &Job { seed: Some(seed), ..job.clone() }, None).0).collect();
    assert!(others.iter().any(|other| *other != said));
}

#[test]
fn a_cancelled_job_ends_within_its_step_and_keeps_what_it_read() {
    let engine = open(&Made::new("llama"));
    let cancel = Cancel::new();
    let mut read_before = 0;
    let done = engine.generate(&job(text(300), Some("a")), &cancel, None, &mut |piece| {
        if let Piece::Read { read, of } = piece {
            assert!(!cancel.is_cancelled());
            assert_eq!(of, 300);
            assert_eq!(read - read_before, 64);
            read_before = read;
            if read == 128 {
                cancel.cancel();
            }
        }
        ControlFlow::Continue(())
    });
    assert_eq!(done.unwrap().end, End::Cancelled);
    assert_eq!(engine.cached("a", &text(300)), 128);
    let (_, done) = run(&engine, &job(text(300), Some("a")), None);
    assert_eq!(done.cached, 128);
    // While it writes, at the next token.
    let mut texts = 0;
    let cancel = Cancel::new();
    let done = engine.generate(&job(text(10), None), &cancel, None, &mut |piece| {
        if let Piece::Text(_) = piece {
            texts += 1;
            cancel.cancel();
        }
        ControlFlow::Continue(())
    });
    assert_eq!((done.unwrap().end, texts), (End::Cancelled, 1));
}

#[test]
fn a_sink_that_wants_no_more_ends_the_job() {
    let engine = open(&Made::new("llama"));
    let done = engine.generate(&job(text(10), None), &Cancel::new(), None, &mut |piece| match piece {
        Piece::Read { .. } => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert_eq!(done.unwrap().end, End::Sink);
}

/// One text, and nothing else.
struct Exactly<'a> {
    wanted: &'a [u8],
    left: &'a [u8],
    asked: usize,
}

impl<'a> Exactly<'a> {
    fn new(wanted: &'a [u8]) -> Self {
        Self { wanted, left: wanted, asked: 0 }
    }
}

impl Constraint for Exactly<'_> {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        self.asked += 1;
        self.left.starts_with(bytes)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.left = &self.left[bytes.len()..];
    }

    fn complete(&self) -> bool {
        self.left.is_empty()
    }

    fn restart(&mut self) {
        self.left = self.wanted;
    }
}

#[test]
fn a_constraint_is_kept_and_asked_no_more_than_needed() {
    let engine = open(&Made::new("llama"));
    let wanted = "{\"a\": [1]} é".as_bytes();
    let mut job = job(text(10), None);
    job.sampling.max_tokens = Some(100);
    let mut constraint = Exactly::new(wanted);
    let (said, done) = run(&engine, &job, Some(&mut constraint));
    assert_eq!((said.as_bytes(), done.end), (wanted, End::Complete));
    assert_eq!(done.completion as usize, wanted.len());
    // What the model says by itself is allowed at the first question.
    let (said, free) = run(&engine, &self::job(text(10), None), None);
    if !said.contains('\u{fffd}') && free.end == End::Length {
        let mut constraint = Exactly::new(said.as_bytes());
        let (again, _) = run(&engine, &job, Some(&mut constraint));
        assert_eq!((again, constraint.asked), (said.clone(), free.completion as usize));
    }
    /// Nothing is right.
    struct Never;
    impl Constraint for Never {
        fn allows(&mut self, _: &[u8]) -> bool {
            false
        }
        fn push(&mut self, _: &[u8]) {}
        fn restart(&mut self) {}
        fn complete(&self) -> bool {
            false
        }
    }
    assert_eq!(run(&engine, &job, Some(&mut Never)).1.end, End::Stuck);
}

#[test]
fn a_prompt_that_fills_the_context_is_refused() {
    let engine =
        Engine::from_bytes(Made::new("llama").bytes().leak(), Limits { context: 50, ..Limits::default() });
    let engine = engine.unwrap();
    assert_eq!(engine.facts().context, 50);
    let sink = &mut |_: Piece<'_>| ControlFlow::Continue(());
    let error = engine.generate(&job(text(50), None), &Cancel::new(), None, sink).unwrap_err();
    assert_eq!(error.to_string(), "the prompt has 50 tokens and the model takes 50 with its answer");
    let (_, done) = run(&engine, &job(text(45), None), None);
    assert!(done.completion <= 5);
    for prompt in [vec![], vec![1_000_000]] {
        engine.generate(&job(prompt, None), &Cancel::new(), None, sink).unwrap_err();
    }
}
