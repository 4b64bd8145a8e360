//! Compares the tokens that the engine and llama.cpp find likeliest.

use std::{error::Error, ops::ControlFlow};

use kontekst_engine::{Engine, Prompt};

use crate::llama::Server;

/// Tokens of each answer.
const ANSWER: usize = 16;

#[rustfmt::skip]
const BEGINNINGS: [&str; 20] = [
    "The capital of", "A short story about", "Once upon a time there was", "def",
    "How many people live in", "Dear Sir or Madam, I write about", "// Returns the number of",
    "The three most important facts about", "Question: what is", "In the year 1900,",
    "import os\n\n# This script is for", "SELECT name FROM table WHERE name =",
    "To cook a good meal, you need", "<html><head><title>", "It is not true that",
    "List of things to buy:\n- ", "My favourite book is about", "fn main() { let name =",
    "The weather today is", "Translate into French:",
];

const SUBJECTS: [&str; 10] = [
    " France",
    " water",
    " the cat",
    " a list",
    " London",
    " music",
    " the sun",
    " numbers",
    " trees",
    " a computer",
];

/// Sends `count` prompts to both, and prints where their answers differ.
///
/// Of each such place it prints by how much the token is likelier than the second one, in logits, in both programs, and by
/// how much the engine's token is likelier than the other one in `exact`, which holds the same weights as `f32`.
pub(crate) fn compare(
    engine: &Engine,
    exact: &Engine,
    server: &Server,
    count: usize,
) -> Result<(), Box<dyn Error>> {
    let vocabulary = engine.vocabulary();
    let texts = BEGINNINGS
        .iter()
        .flat_map(|beginning| SUBJECTS.iter().map(move |subject| format!("{beginning}{subject}")));
    let (mut all, mut equal, mut tokens_differ, mut exact_is_ours) = (0, 0, 0, 0);
    for text in texts.take(count) {
        all += 1;
        let mut prompt = vocabulary.prompt(&text);
        tokens_differ += usize::from(server.tokens(&text)? != prompt);
        let ours = likeliest(engine, &prompt)?;
        // The token that ends an answer is not part of it.
        let mut theirs = server.likeliest(&prompt, ANSWER)?;
        theirs.truncate(theirs.iter().position(|step| vocabulary.is_end(step.token)).unwrap_or(ANSWER));
        let Some(at) = (0..ours.len().max(theirs.len()))
            .find(|&at| ours.get(at).map(|step| step.token) != theirs.get(at).map(|step| step.token))
        else {
            equal += 1;
            continue;
        };
        let (Some(left), Some(right)) = (ours.get(at), theirs.get(at)) else {
            println!("{text:?}, token {at}: one answer ends there");
            continue;
        };
        prompt.extend(ours[..at].iter().map(|step| step.token));
        let likelier = distance(exact, &prompt, left.token, right.token)?;
        exact_is_ours += usize::from(likelier > 0.0);
        let name = |step: &Step| format!("{:?} by {:.3}", vocabulary.text(step.token), step.gap);
        println!("{text:?}, token {at}: {}, llama.cpp {}, exact {likelier:+.3}", name(left), name(right));
    }
    println!(
        "{equal} of {all} answers of {ANSWER} tokens are equal; of the others {exact_is_ours} go on as the exact engine does, \
         at the first place that differs; {tokens_differ} prompts have other tokens"
    );
    Ok(())
}

/// Returns by how much one token is likelier than another one after a prompt, in logits.
fn distance(engine: &Engine, prompt: &[u32], left: u32, right: u32) -> Result<f32, Box<dyn Error>> {
    let prompt = Prompt { tokens: prompt, session: None };
    let distance = engine.decode(prompt, &|| false, &mut |_| ControlFlow::Continue(()), |decoder| {
        let logits = decoder.logits();
        Ok(logits[left as usize] - logits[right as usize])
    })?;
    Ok(distance)
}

/// The likeliest token.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub token: u32,
    /// The distance of its logit to that of the second one.
    pub gap: f32,
}

/// Continues a prompt with the likeliest token each time, up to the end of the answer.
fn likeliest(engine: &Engine, prompt: &[u32]) -> Result<Vec<Step>, Box<dyn Error>> {
    let prompt = Prompt { tokens: prompt, session: None };
    let steps = engine.decode(prompt, &|| false, &mut |_| ControlFlow::Continue(()), |decoder| {
        let mut steps = Vec::new();
        while steps.len() < ANSWER {
            let step = best(decoder.logits());
            if engine.vocabulary().is_end(step.token) {
                break;
            }
            steps.push(step);
            decoder.step(&[step.token])?;
        }
        Ok(steps)
    })?;
    Ok(steps)
}

fn best(logits: &[f32]) -> Step {
    let (mut first, mut second, mut token) = (f32::NEG_INFINITY, f32::NEG_INFINITY, 0);
    for (id, &logit) in (0..).zip(logits) {
        if logit > first {
            (second, first, token) = (first, logit, id);
        } else {
            second = second.max(logit);
        }
    }
    Step { token, gap: first - second }
}
