//! Guesses change nothing but the time that an answer takes.

use std::ops::ControlFlow;

use serde_json::json;

use super::{Exactly, both, logits, open, request, run, text};
use crate::{
    Constraint, DecodeError, Engine, Event, FinishReason, GenerateRequest, Generation, Limits, Prompt,
    Sampling,
    grammar::Grammar,
    inference::{
        ARCHITECTURES, decoder::MOST_AT_ONCE, random_model::RandomModel, sequence_cache::SequenceCache,
    },
};

/// Large enough to guess.
fn large(model: &RandomModel) -> Engine {
    let [large, _] = both(model);
    large
}

/// A prompt that says the same twice.
fn repeated() -> Vec<u32> {
    let line = b"let total = lines.iter().map(Line::total).sum();\n";
    line.iter().chain(line).map(|byte| u32::from(*byte)).collect()
}

#[test]
fn a_few_tokens_at_once_give_the_same_logits_as_one_after_the_other() {
    for name in ARCHITECTURES {
        for engine in both(&RandomModel::new(name)) {
            let network = &engine.network;
            let (tokens, outputs) = (text(70), network.outputs());
            let start = || {
                let mut cache = SequenceCache::new(&network.shape);
                logits(network, &mut cache, &tokens[..29], 64);
                cache
            };
            let mut cache = start();
            let one_by_one: Vec<Vec<f32>> =
                tokens[29..].iter().map(|&token| logits(network, &mut cache, &[token], 1)).collect();
            for count in 2..=MOST_AT_ONCE {
                let mut cache = start();
                let mut expected = one_by_one.iter();
                for tokens in tokens[29..].chunks(count) {
                    let found = network.read_tokens(&mut cache, tokens, tokens.len(), &|| false).unwrap();
                    for (found, expected) in found.chunks_exact(outputs).zip(&mut expected) {
                        assert_eq!(found, expected, "{name}, {count} at once");
                    }
                }
            }
        }
    }
}

/// Runs a request without guesses and with them, and returns the answer, which must be the same, and how many guesses were
/// accepted.
#[track_caller]
fn compare(
    engine: &Engine,
    wanted: &GenerateRequest<'_>,
    constraint: &dyn Fn() -> Option<Box<dyn Constraint>>,
) -> (String, Generation) {
    let [without, with] = [false, true].map(|speculation| {
        let prompt = Prompt { session: Some("a"), ..wanted.prompt };
        let wanted = GenerateRequest { prompt, speculation, ..wanted.clone() };
        let mut constraint = constraint();
        let constraint = constraint.as_mut().map(|constraint| &mut **constraint as &mut dyn Constraint);
        let (answer, generation) = run(engine, &wanted, constraint);
        // The same part of the answer stays in the cache.
        let mut longer = wanted.prompt.tokens.to_vec();
        longer.extend(engine.vocabulary().encode(&answer, false));
        longer.push(1);
        let cached = engine.cached_tokens("a", &longer);
        // A prompt that is read anew is read in larger parts, and rounded otherwise.
        engine.forget("a");
        (answer, generation, cached)
    });
    assert_eq!((&without.0, without.2), (&with.0, with.2));
    let counts = |done: Generation| (done.prompt_tokens, done.completion_tokens, done.finish);
    assert_eq!(counts(without.1), counts(with.1));
    assert_eq!(without.1.guessed_tokens, 0);
    (with.0, with.1)
}

#[test]
fn an_answer_is_the_same_with_guesses_and_without() {
    for name in ARCHITECTURES {
        let engine = large(&RandomModel::new(name));
        let (prompt, mut accepted) = (repeated(), 0);
        for sampling in [
            Sampling::greedy(),
            Sampling { repeat_penalty: 1.1, ..Sampling::greedy() },
            Sampling::default(),
            Sampling { temperature: 2.0, top_k: 0, top_p: 1.0, repeat_penalty: 1.2 },
        ] {
            for seed in 0..4 {
                let request =
                    GenerateRequest { sampling, max_tokens: 120, seed: Some(seed), ..request(&prompt, None) };
                accepted += compare(&engine, &request, &|| None).1.accepted_tokens;
            }
        }
        assert!(accepted > 0, "{name}");
    }
}

#[test]
fn what_a_constraint_demands_is_guessed_and_its_end_is_kept() {
    let engine = large(&RandomModel::new("qwen2"));
    let prompt = repeated();
    let request = GenerateRequest { max_tokens: 100, ..request(&prompt, None) };
    // It ends within what was guessed.
    let wanted = "let total = lines.iter().map(Li";
    let (answer, done) = compare(&engine, &request, &|| Some(Box::new(Exactly::new(wanted.as_bytes()))));
    assert_eq!((answer.as_str(), done.finish), (wanted, FinishReason::ConstraintComplete));
    let most = u32::try_from(wanted.len()).unwrap();
    assert!((most / 2..most).contains(&done.accepted_tokens), "{done:?}");
    // And so does the limit.
    for max_tokens in 1..=most {
        let request = GenerateRequest { max_tokens, ..request.clone() };
        compare(&engine, &request, &|| Some(Box::new(Exactly::new(wanted.as_bytes()))));
    }
}

#[test]
fn a_schema_is_kept() {
    let engine = large(&RandomModel::new("llama"));
    let schema = json!({"type": "object", "properties": {
        "name": {"enum": ["read_file", "write_file"]}, "more": {"type": "string", "maxLength": 30}},
        "required": ["name", "more"]});
    let prompt: Vec<u32> =
        br#"{"name": "read_file", "more": "x"} {"name": "read_file", "more": "#.map(u32::from).to_vec();
    let mut accepted = 0;
    for seed in 0..8 {
        let sampling = Sampling { temperature: 1.5, ..Sampling::default() };
        let request =
            GenerateRequest { sampling, seed: Some(seed), max_tokens: 200, ..request(&prompt, None) };
        accepted +=
            compare(&engine, &request, &|| Some(Box::new(Grammar::object(&schema)))).1.accepted_tokens;
    }
    assert!(accepted > 0);
}

#[test]
fn the_end_of_the_window_is_the_end_of_the_answer() {
    let bytes = RandomModel::new("llama").bytes().leak();
    let prompt = repeated();
    for room in 1..=12 {
        let context_size = u32::try_from(prompt.len()).unwrap() + room;
        let engine =
            Engine::from_bytes(bytes, Limits { context_size, small_model: 0, ..Limits::default() }).unwrap();
        let request = GenerateRequest { max_tokens: 100, ..request(&prompt, None) };
        let endless = || Some(Box::new(Exactly::new(&b"let total = lines"[..])) as Box<dyn Constraint>);
        let (_, done) = compare(&engine, &request, &endless);
        assert_eq!((done.completion_tokens, done.finish), (room, FinishReason::Length));
    }
}

#[test]
fn a_receiver_that_wants_no_more_leaves_no_guess_in_the_cache() {
    let engine = large(&RandomModel::new("llama"));
    let prompt = repeated();
    let wanted = "let total = lines.iter().map(Line::total)";
    let cached = [false, true].map(|speculation| {
        let request = GenerateRequest {
            prompt: Prompt { tokens: &prompt, session: Some("a") },
            max_tokens: 100,
            speculation,
            ..request(&prompt, None)
        };
        let mut answer = String::new();
        let constraint = &mut Exactly::new(wanted.as_bytes());
        let result = engine.generate(&request, Some(constraint), &|| false, &mut |event| {
            if let Event::Text(text) = event {
                answer.push_str(text);
            }
            // As a stop string is found.
            if answer.ends_with("iter()") { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(result, Err(DecodeError::SinkClosed)), "{result:?}");
        let all: Vec<u32> = prompt.iter().copied().chain(wanted.bytes().map(u32::from)).collect();
        let cached = engine.cached_tokens("a", &all);
        engine.forget("a");
        cached
    });
    // The last token was sent and not read.
    assert_eq!(cached, [prompt.len() + "let total = lines.iter()".len() - 1; 2]);
}

#[test]
fn a_small_model_guesses_nothing() {
    let prompt = repeated();
    let request = GenerateRequest { max_tokens: 100, ..request(&prompt, None) };
    assert_eq!(run(&open(&RandomModel::new("llama")), &request, None).1.guessed_tokens, 0);
}
