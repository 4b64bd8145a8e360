//! Measures what guesses are worth.

use std::{borrow::Cow, error::Error, ops::ControlFlow, time::Duration};

use kontekst_engine::{
    Engine, Event, GenerateRequest, Generation, Prompt, Sampling,
    chat::Message,
    template::{InThisProcess, Template, TemplateSource},
};

use crate::processor;

/// Measurements of each kind, of which the median counts.
const ROUNDS: usize = 3;
/// The session in which the prompt stays, so that it is read once.
const SESSION: &str = "speculation";
/// Of each answer, which is enough for the files.
const MOST_TOKENS: u32 = 700;
/// Tokens that are read at once.
const STEPS: [usize; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

const CACHE: &str = include_str!("../../crates/engine/src/inference/sequence_cache.rs");
const STORE: &str = include_str!("../../crates/engine/src/inference/session_store.rs");
const INVOICE: &str = include_str!("invoice.py");

/// The answers: a file with a small change, a new program, or prose.
const CASES: [(&str, &str, &str); 7] = [
    ("rewrite, one name", "session_store.rs", STORE),
    ("rewrite, one number", "invoice.py", INVOICE),
    ("rewrite, one function", "sequence_cache.rs", CACHE),
    ("a new program", "", "Write a Python program that reads a CSV file and prints the sum of each column."),
    ("prose, a story", "", "Tell a story of about 150 words about an old lighthouse keeper."),
    ("prose, a letter", "", "Write a letter to a friend about a walk through the city of Lisbon."),
    ("prose, a subject", "", "Explain in about 150 words how bread is made and why the dough rises."),
];

const REQUESTS: [&str; 3] = [
    "Rename the field `max_bytes` and the parameter of that name to `limit`.",
    "Change the discount from 10 to 15 percent.",
    "Add a method `len` that returns the number of tokens.",
];

/// Prints how long answers take without guesses and with them, in turn, and how long reading several tokens at once takes.
/// Of the answers only those are measured whose names have `part` in them.
pub(crate) fn compare(engine: &Engine, part: &str) -> Result<(), Box<dyn Error>> {
    print_steps(engine)?;
    let template = Template::new(TemplateSource::of(engine), &InThisProcess)?;
    println!(
        "\ncase                    tokens  guessed  accepted   without      with  times, processor  times, clock"
    );
    for (number, (name, path, text)) in CASES.iter().enumerate().filter(|(_, case)| case.0.contains(part)) {
        let request = match REQUESTS.get(number) {
            // As kontekst asks for a whole file.
            Some(request) => format!(
                "{path}:\n```\n{text}\n```\n\n{request}\n\nChange nothing else. Write the new content of {path}, all of it, \
                 in one code block."
            ),
            None => (*text).to_owned(),
        };
        let prompt = prompt(engine, &template, &request)?;
        let mut answers = [const { Vec::new() }; 2];
        generate(engine, &prompt, 1, false)?;
        for _ in 0..ROUNDS {
            for (speculation, answers) in [false, true].into_iter().zip(&mut answers) {
                answers.push(generate(engine, &prompt, MOST_TOKENS, speculation)?);
            }
        }
        print(name, &answers)?;
        engine.forget(SESSION);
    }
    Ok(())
}

/// One answer.
struct Answer {
    text: String,
    generation: Generation,
    processor: Duration,
}

fn print(name: &str, answers: &[Vec<Answer>; 2]) -> Result<(), Box<dyn Error>> {
    let [without, with] = answers;
    if without.iter().chain(with).any(|answer| answer.text != without[0].text) {
        return Err(format!("{name}: the answers differ").into());
    }
    let times =
        |answers: &[Answer], time: fn(&Answer) -> Duration| median(answers.iter().map(time).collect());
    let tokens = with[0].generation.completion_tokens;
    let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(tokens);
    let [slow, fast] = [without, with].map(|answers| times(answers, |answer| answer.processor));
    let [slow_clock, fast_clock] =
        [without, with].map(|answers| times(answers, |answer| answer.generation.decode_time));
    let Generation { guessed_tokens, accepted_tokens, .. } = with[0].generation;
    println!(
        "{name:<24}{tokens:>6} {guessed_tokens:>8} {accepted_tokens:>9} {:>6.1} ms {:>6.1} ms {:>17.2} {:>13.2}",
        each(slow),
        each(fast),
        slow.as_secs_f64() / fast.as_secs_f64(),
        slow_clock.as_secs_f64() / fast_clock.as_secs_f64(),
    );
    Ok(())
}

fn generate(engine: &Engine, tokens: &[u32], most: u32, speculation: bool) -> Result<Answer, Box<dyn Error>> {
    let prompt = Prompt { tokens, session: Some(SESSION) };
    let (sampling, seed) = (Sampling::greedy(), None);
    let request = GenerateRequest { prompt, sampling, max_tokens: most, seed, speculation };
    let (mut text, before) = (String::new(), processor::time());
    let generation = engine.generate(&request, None, &|| false, &mut |event| {
        if let Event::Text(more) = event {
            text.push_str(more);
        }
        ControlFlow::Continue(())
    })?;
    Ok(Answer { text, generation, processor: processor::time() - before })
}

/// Prints the time of steps, as multiples of that of one token.
fn print_steps(engine: &Engine) -> Result<(), Box<dyn Error>> {
    let prompt: Vec<u32> = (0..200).map(|number| number * 37 % 160 + 32).collect();
    let prompt = Prompt { tokens: &prompt, session: None };
    let times = engine.decode(prompt, &|| false, &mut |_| ControlFlow::Continue(()), |decoder| {
        let mut times = STEPS.map(|_| Vec::new());
        for _ in 0..4 * ROUNDS {
            for (count, times) in STEPS.iter().zip(&mut times) {
                let before = processor::time();
                decoder.step_each(&vec![70; *count])?;
                times.push(processor::time() - before);
                decoder.rewind(0);
            }
        }
        Ok(times.map(median))
    })?;
    println!("tokens at once   processor time   times one token");
    for (count, time) in STEPS.iter().zip(times) {
        let times_one = time.as_secs_f64() / times[0].as_secs_f64();
        println!("{count:>14} {:>13.1} ms {times_one:>17.2}", time.as_secs_f64() * 1e3);
    }
    Ok(())
}

fn prompt(engine: &Engine, template: &Template, request: &str) -> Result<Vec<u32>, Box<dyn Error>> {
    let message = Message {
        role: "user",
        content: Cow::Borrowed(request),
        reasoning_content: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    };
    let rendered = template.render(&[message], &[], &InThisProcess)?;
    Ok(template.tokenize(engine.vocabulary(), &rendered.text))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
