//! Measures how fast the built-in engine reads and writes, next to llama.cpp on the same file in the same run.
//!
//!     KONTEKST_LLAMA_SERVER=llama-server cargo bench --bench engine -- MODEL.gguf [PROMPT-TOKENS] [ANSWER-TOKENS]
//!     KONTEKST_LLAMA_SERVER=llama-server cargo bench --bench engine -- MODEL.gguf --agree [PROMPTS]
//!     KONTEKST_LLAMA_SERVER=llama-server cargo bench --bench engine -- MODEL.gguf --processor [PROMPT-TOKENS] [ANSWER-TOKENS]
//!     cargo bench --bench engine -- MODEL.gguf --speculation [CASE]
//!
//! With `--avx2` before the name of the file the engine does without AVX-512.
//! Prints tokens per second and ratios; only the ratios mean anything on another machine. Both use one prompt of
//! the same tokens, read once before it counts, and take turns; the best of three counts.
//! With `--processor` both have one thread, and the processor time that they use counts, which says something also on a
//! machine that does other things.
//! With `--agree` it compares the tokens that both find likeliest, after up to 200 short prompts, and says with
//! which of them the same weights as `f32` agree where they differ. Those take four bytes for each parameter.
//! With `--speculation` it compares answers with and without guesses of the next tokens, which must be the same.

#![expect(clippy::print_stdout, reason = "it is what a bench is for")]

mod agree;
mod llama;
mod processor;
mod speculation;

use std::{error::Error, ops::ControlFlow, path::Path, time::Duration};

use kontekst_engine::{Constraint, Engine, GenerateRequest, Limits, Prompt, Sampling};

/// As in the static program: musl's own would be measured otherwise.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tokens per second.
#[derive(Clone, Copy, Default)]
struct Speed {
    reading: f64,
    writing: f64,
}

impl Speed {
    /// The speed of reading a prompt and then writing an answer.
    fn of(prompt: usize, reading: Duration, answer: u32, writing: Duration) -> Self {
        let prompt = f64::from(u32::try_from(prompt).expect("a prompt is short"));
        Self { reading: prompt / reading.as_secs_f64(), writing: f64::from(answer) / writing.as_secs_f64() }
    }

    fn best(self, other: Self) -> Self {
        Self { reading: self.reading.max(other.reading), writing: self.writing.max(other.writing) }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench").peekable();
    if arguments.next_if(|argument| argument == "--avx2").is_some() {
        kontekst_engine::without_avx512();
    }
    let Some(model) = arguments.next() else {
        println!("no model file given");
        return Ok(());
    };
    let processor = arguments.next_if(|argument| argument == "--processor").is_some();
    if processor {
        processor::stay_on_one()?;
    }
    let agree = arguments.next_if(|argument| argument == "--agree").is_some();
    let speculation = arguments.next_if(|argument| argument == "--speculation").is_some();
    let case = if speculation { arguments.next().unwrap_or_default() } else { String::new() };
    let mut number = |otherwise: u32| arguments.next().map_or(Ok(otherwise), |number| number.parse::<u32>());
    let engine = Engine::open(Path::new(&model), Limits::default())?;
    if speculation {
        return speculation::compare(&engine, &case);
    }
    let server = match std::env::var_os("KONTEKST_LLAMA_SERVER") {
        Some(program) => {
            Some(llama::Server::start(Path::new(&program), Path::new(&model), if processor { 1 } else { 2 })?)
        }
        None => None,
    };
    if agree {
        let server = server.ok_or("KONTEKST_LLAMA_SERVER is not set")?;
        let exact = Engine::open(Path::new(&model), Limits { small_model: u64::MAX, ..Limits::default() })?;
        return agree::compare(&engine, &exact, &server, number(200)? as usize);
    }
    let (prompt, answer) = (number(512)?, number(128)?);
    let usual = u32::try_from(engine.vocabulary().len())?.min(200);
    let prompt: Vec<u32> = (0..prompt).map(|number| number * 37 % (usual - 32) + 32).collect();
    let (mut ours, mut theirs) = (Speed::default(), Speed::default());
    for _ in 0..3 {
        ours = ours.best(match processor {
            true => processor::built_in(&engine, &prompt, answer)?,
            false => built_in(&engine, &prompt, answer)?,
        });
        if let Some(server) = &server {
            theirs = theirs.best(match processor {
                true => server.processor_speed(&prompt, answer)?,
                false => server.speed(&prompt, answer)?,
            });
        }
    }
    println!("tokens per second   reading   writing");
    println!("built in          {:>9.1} {:>9.1}", ours.reading, ours.writing);
    if server.is_some() {
        println!("llama.cpp         {:>9.1} {:>9.1}", theirs.reading, theirs.writing);
        let (reading, writing) = (ours.reading / theirs.reading, ours.writing / theirs.writing);
        println!("ratio             {reading:>9.2} {writing:>9.2}");
    }
    Ok(())
}

/// Allows everything but an end.
struct Endless;

impl Constraint for Endless {
    fn allows(&mut self, _: &[u8]) -> bool {
        true
    }

    fn push(&mut self, _: &[u8]) {}

    fn is_complete(&self) -> bool {
        false
    }
}

fn built_in(engine: &Engine, prompt: &[u32], answer: u32) -> Result<Speed, Box<dyn Error>> {
    let prompt = Prompt { tokens: prompt, session: None };
    let (sampling, seed, speculation) = (Sampling::greedy(), None, false);
    let request = GenerateRequest { prompt, sampling, max_tokens: answer, seed, speculation };
    let generation =
        engine.generate(&request, Some(&mut Endless), &|| false, &mut |_| ControlFlow::Continue(()))?;
    // Reading the prompt gives the first token of the answer.
    let written = f64::from(generation.completion_tokens.saturating_sub(1));
    Ok(Speed {
        reading: f64::from(generation.prompt_tokens) / generation.prefill_time.as_secs_f64(),
        writing: written / generation.decode_time.as_secs_f64(),
    })
}
