//! The engine on small models with random weights, one for each architecture.

mod hostile;
mod speculation;

use std::{cell::Cell, ops::ControlFlow};

use candle_core::quantized::GgmlDType;

use super::{
    ARCHITECTURES, Constraint, DecodeError, Engine, Event, FinishReason, GenerateRequest, Generation, Limits,
    PrefillProgress, Prompt, Sampling, network::Network, sequence_cache::SequenceCache,
};
use crate::inference::random_model::RandomModel;

fn open(model: &RandomModel) -> Engine {
    Engine::from_bytes(model.bytes().leak(), Limits::default()).unwrap()
}

/// As one that is not small, and as one that is.
fn both(model: &RandomModel) -> [Engine; 2] {
    let open = |small| {
        Engine::from_bytes(model.bytes().leak(), Limits { small_model: small, ..Limits::default() }).unwrap()
    };
    [open(0), open(u64::MAX)]
}

/// Returns the logits after `tokens`, read in steps of this size.
fn logits(network: &Network, cache: &mut SequenceCache, tokens: &[u32], step: usize) -> Vec<f32> {
    let mut last = Vec::new();
    for step in tokens.chunks(step) {
        last = network.read_tokens(cache, step, 1, &|| false).unwrap();
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
        for engine in both(&RandomModel::new(name)) {
            let read =
                |step| logits(&engine.network, &mut SequenceCache::new(&engine.network.shape), &tokens, step);
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
        let engine = open(&RandomModel::new(name));
        let network = &engine.network;
        let tokens = text(60);
        let fresh = logits(network, &mut SequenceCache::new(&network.shape), &tokens, 64);
        let mut cache = SequenceCache::new(&network.shape);
        // The same beginning, then something else that must leave no trace.
        let mut other = tokens[..21].to_vec();
        other.extend((0..50).map(|number| number * 11 % 90 + 100));
        logits(network, &mut cache, &other, 64);
        assert_eq!(cache.common_prefix(&tokens), 21);
        cache.rewind(21);
        agree(&fresh, &logits(network, &mut cache, &tokens[21..], 64), name);
    }
}

#[test]
fn every_kind_of_weights_says_about_the_same() {
    for name in ["llama", "phi3"] {
        let mut model = RandomModel::new(name);
        let whole = |model: &RandomModel| {
            let read = |engine: Engine| {
                logits(&engine.network, &mut SequenceCache::new(&engine.network.shape), &text(30), 64)
            };
            let [large, small] = both(model).map(read);
            // The large one rounds what it multiplies to eight bits.
            agree(&small, &large, &format!("{name} with {:?}", model.weights));
            large
        };
        model.weights = GgmlDType::F32;
        let exact = whole(&model);
        let mixed = [(GgmlDType::Q8_0, Some(GgmlDType::Q6K))];
        for (weights, mixed) in
            crate::inference::random_model::KINDS.iter().map(|kind| (*kind, None)).chain(mixed)
        {
            (model.weights, model.mixed) = (weights, mixed);
            let found = whole(&model);
            let dot =
                |left: &[f32], right: &[f32]| -> f32 { left.iter().zip(right).map(|(l, r)| l * r).sum() };
            let alike = dot(&exact, &found) / (dot(&exact, &exact) * dot(&found, &found)).sqrt();
            // Four bits say less than eight.
            let least = if weights.type_size() * 8 < 6 * weights.block_size() { 0.8 } else { 0.95 };
            assert!(alike > least, "{name} with {weights:?} and {mixed:?}: {alike}");
        }
    }
}

/// The text of an answer, and how it came about.
fn run(
    engine: &Engine,
    request: &GenerateRequest<'_>,
    constraint: Option<&mut dyn Constraint>,
) -> (String, Generation) {
    let mut answer = String::new();
    let generation = engine.generate(request, constraint, &|| false, &mut |event| {
        if let Event::Text(text) = event {
            answer.push_str(text);
        }
        ControlFlow::Continue(())
    });
    (answer, generation.unwrap())
}

fn request<'a>(tokens: &'a [u32], session: Option<&'a str>) -> GenerateRequest<'a> {
    let prompt = Prompt { tokens, session };
    GenerateRequest { prompt, sampling: Sampling::greedy(), max_tokens: 12, seed: Some(7), speculation: true }
}

#[test]
fn the_next_turn_reads_only_what_is_new() {
    let engine = open(&RandomModel::new("llama"));
    let (_, first) = run(&engine, &request(&text(100), Some("a")), None);
    assert_eq!((first.prompt_tokens, first.cached_tokens), (100, 0));
    let mut longer = text(130);
    assert_eq!(engine.cached_tokens("a", &longer), 100);
    let (said, second) = run(&engine, &request(&longer, Some("a")), None);
    assert_eq!((second.prompt_tokens, second.cached_tokens), (130, 100));
    assert_eq!(run(&engine, &request(&longer, None), None).0, said);
    // When a message changes, the tokens before it are still cached.
    longer[90] += 1;
    let (said, third) = run(&engine, &request(&longer, Some("a")), None);
    assert_eq!(third.cached_tokens, 90);
    assert_eq!(run(&engine, &request(&longer, None), None).0, said);
    // The same again: one token must be read to know what comes next.
    assert_eq!(run(&engine, &request(&longer, Some("a")), None).1.cached_tokens, 129);
    engine.forget("a");
    assert_eq!(engine.session_bytes(), 0);
}

#[test]
fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
    let bytes = RandomModel::new("qwen2").bytes().leak();
    let engine = Engine::from_bytes(bytes, Limits::default()).unwrap();
    run(&engine, &request(&text(200), Some("one")), None);
    let one = engine.session_bytes();
    let engine =
        Engine::from_bytes(bytes, Limits { session_bytes: 2 * one + one / 2, ..Limits::default() }).unwrap();
    // Different from its first token, so that none has a part in another.
    let other = |first: u32| [vec![first], text(199)].concat();
    let sessions = [("one", other(1)), ("two", other(2)), ("three", other(3))];
    for (session, prompt) in &sessions {
        run(&engine, &request(prompt, Some(session)), None);
        assert!(engine.session_bytes() <= 2 * one + one / 2);
    }
    let cached = sessions.map(|(session, prompt)| engine.cached_tokens(session, &prompt));
    assert_eq!(cached, [0, 200, 200]);
}

#[test]
fn a_new_session_begins_with_what_another_has_read() {
    let engine = open(&RandomModel::new("llama"));
    let mut prompt = text(200);
    run(&engine, &request(&prompt, Some("one")), None);
    prompt[150] += 1;
    assert_eq!(engine.cached_tokens("two", &prompt), 150);
    let (said, done) = run(&engine, &request(&prompt, Some("two")), None);
    assert_eq!(done.cached_tokens, 150);
    assert_eq!(run(&engine, &request(&prompt, None), None).0, said);
    assert_eq!(engine.cached_tokens("one", &text(200)), 200, "the other still has its own");
}

#[test]
fn a_seed_chooses_the_same_again() {
    let engine = open(&RandomModel::new("qwen3"));
    let prompt = text(20);
    let sampling = Sampling { temperature: 5.0, repeat_penalty: 1.3, ..Sampling::default() };
    let request = GenerateRequest { sampling, max_tokens: 40, ..request(&prompt, None) };
    let (answer, generation) = run(&engine, &request, None);
    assert_eq!(run(&engine, &request, None).0, answer);
    assert!(generation.completion_tokens > 0);
    // Another seed leads to other tokens sooner or later.
    let with_seed = |seed| run(&engine, &GenerateRequest { seed: Some(seed), ..request.clone() }, None).0;
    let others: Vec<_> = (8..40).map(with_seed).collect();
    assert!(others.iter().any(|other| *other != answer));
}

#[test]
fn a_cancelled_request_ends_within_its_step_and_keeps_what_it_read() {
    let engine = open(&RandomModel::new("llama"));
    let (cancelled, mut read_before) = (Cell::new(false), 0);
    let prompt = text(300);
    let stop = || cancelled.get();
    let result = engine.generate(&request(&prompt, Some("a")), None, &stop, &mut |event| {
        if let Event::Prefill(PrefillProgress { processed, total }) = event {
            assert!(!cancelled.get());
            assert_eq!(total, 300);
            assert_eq!(processed - read_before, 64);
            read_before = processed;
            cancelled.set(processed == 128);
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(result, Err(DecodeError::Cancelled)), "{result:?}");
    assert_eq!(engine.cached_tokens("a", &prompt), 128);
    let (_, generation) = run(&engine, &request(&prompt, Some("a")), None);
    assert_eq!(generation.cached_tokens, 128);
    // While it writes, it ends at the next token.
    let mut texts = 0;
    cancelled.set(false);
    let result = engine.generate(&request(&text(10), None), None, &stop, &mut |event| {
        if let Event::Text(_) = event {
            texts += 1;
            cancelled.set(true);
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(result, Err(DecodeError::Cancelled)), "{result:?}");
    assert_eq!(texts, 1);
}

#[test]
fn a_sink_that_wants_no_more_ends_the_request() {
    let engine = open(&RandomModel::new("llama"));
    let result = engine.generate(&request(&text(10), None), None, &|| false, &mut |event| match event {
        Event::Prefill(_) => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert!(matches!(result, Err(DecodeError::SinkClosed)), "{result:?}");
}

#[test]
fn a_decoder_goes_back_and_on_as_if_it_had_never_been_elsewhere() {
    let engine = open(&RandomModel::new("llama"));
    let prompt = text(20);
    let prompt = Prompt { tokens: &prompt, session: Some("a") };
    let go_on = &mut |_| ControlFlow::Continue(());
    let expected = engine.decode(prompt, &|| false, go_on, |decoder| {
        decoder.step(&[70, 71])?;
        Ok(decoder.logits().to_vec())
    });
    let found = engine.decode(prompt, &|| false, go_on, |decoder| {
        assert_eq!((decoder.prompt_tokens(), decoder.cached_tokens()), (20, 19));
        decoder.step(&[70, 80, 81])?;
        assert_eq!(decoder.answer(), [70, 80, 81]);
        decoder.rewind(1);
        decoder.step(&[71])?;
        assert_eq!((decoder.answer(), decoder.tokens().len()), (&[70, 71][..], 22));
        Ok(decoder.logits().to_vec())
    });
    agree(&expected.unwrap(), &found.unwrap(), "after going back");
}

/// One text, and nothing else.
struct Exactly<'a> {
    left: &'a [u8],
    asked: usize,
}

impl<'a> Exactly<'a> {
    fn new(wanted: &'a [u8]) -> Self {
        Self { left: wanted, asked: 0 }
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

    fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}

#[test]
fn a_constraint_is_kept_and_asked_no_more_than_needed() {
    let engine = open(&RandomModel::new("llama"));
    let wanted = "{\"a\": [1]} é".as_bytes();
    let prompt = text(10);
    let long = GenerateRequest { max_tokens: 100, ..request(&prompt, None) };
    let mut constraint = Exactly::new(wanted);
    let (answer, generation) = run(&engine, &long, Some(&mut constraint));
    assert_eq!((answer.as_bytes(), generation.finish), (wanted, FinishReason::ConstraintComplete));
    assert_eq!(generation.completion_tokens as usize, wanted.len());
    // What the model says by itself is allowed at the first question.
    let (answer, free) = run(&engine, &request(&prompt, None), None);
    if !answer.contains('\u{fffd}') && free.finish == FinishReason::Length {
        let mut constraint = Exactly::new(answer.as_bytes());
        let (again, _) = run(&engine, &long, Some(&mut constraint));
        assert_eq!((again, constraint.asked), (answer.clone(), free.completion_tokens as usize));
    }
    /// Nothing is right.
    struct Never;
    impl Constraint for Never {
        fn allows(&mut self, _: &[u8]) -> bool {
            false
        }
        fn push(&mut self, _: &[u8]) {}
        fn is_complete(&self) -> bool {
            false
        }
    }
    assert_eq!(run(&engine, &long, Some(&mut Never)).1.finish, FinishReason::NoAllowedToken);
}

#[test]
fn the_sampling_of_a_file_is_read_and_nonsense_is_not() {
    let sampling = |numbers: &[(&'static str, f32)]| {
        let mut model = RandomModel::new("llama");
        model.numbers = numbers.to_vec();
        Engine::from_bytes(model.bytes().leak(), Limits::default()).unwrap().info().sampling
    };
    assert_eq!(sampling(&[]), Sampling::default());
    let found = sampling(&[
        ("general.sampling.temp", 0.25),
        ("general.sampling.top_p", 0.5),
        ("general.sampling.penalty_repeat", 1.25),
    ]);
    assert_eq!(
        found,
        Sampling { temperature: 0.25, top_p: 0.5, repeat_penalty: 1.25, ..Sampling::default() }
    );
    let nonsense = sampling(&[
        ("general.sampling.temp", f32::NAN),
        ("general.sampling.top_p", -1.0),
        ("general.sampling.penalty_repeat", 0.0),
    ]);
    assert_eq!(nonsense, Sampling::default());
}

#[test]
fn a_prompt_that_fills_the_context_is_refused() {
    let limits = Limits { context_size: 50, ..Limits::default() };
    let engine = Engine::from_bytes(RandomModel::new("llama").bytes().leak(), limits).unwrap();
    assert_eq!(engine.info().context_size, 50);
    let refused = |prompt: &[u32]| {
        let sink = &mut |_: Event<'_>| ControlFlow::Continue(());
        engine.generate(&request(prompt, None), None, &|| false, sink).unwrap_err().to_string()
    };
    assert_eq!(refused(&text(50)), "the prompt has 50 tokens and the model takes 50 with its answer");
    let (_, generation) = run(&engine, &request(&text(45), None), None);
    assert!(generation.completion_tokens <= 5);
    for prompt in [vec![], vec![1_000_000]] {
        assert!(refused(&prompt).contains("tokens that it does not have"));
    }
}
