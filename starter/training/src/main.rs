//! `cargo run --profile train -p kontekst-starter-training -- train` makes starter/kontekst.gguf.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use kontekst_starter_training::data::{Draw, Role, prompt, sample};
use kontekst_starter_training::decode::answer;
use kontekst_starter_training::eval;
use kontekst_starter_training::gguf::{self, Quantization};
use kontekst_starter_training::net::Shape;
use kontekst_starter_training::train::{Checkpoint, Plan, Schedule, train};

#[derive(Parser)]
#[command(about = "Makes kontekst's built-in model")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train, or go on with a checkpoint
    Train(Training),
    /// Show conversations to learn from
    Samples {
        #[arg(default_value_t = 20)]
        count: usize,
        #[arg(default_value_t = 1)]
        seed: u64,
    },
    /// Ask a model or a checkpoint
    Ask { model: PathBuf, request: String },
    /// Examine a model or a checkpoint: held-out requests, answers to results, handwritten phrasings
    Eval {
        #[arg(default_value = "starter/kontekst.gguf")]
        model: PathBuf,
        /// Held-out requests that mean a call
        #[arg(long, default_value_t = eval::CALLS)]
        calls: usize,
        /// The seed of the held-out requests; another number gives others
        #[arg(long, default_value_t = eval::SEED)]
        seed: u64,
        /// Show the first wrong answers of each kind: three, or as many as are named
        #[arg(long, value_name = "COUNT", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
        wrong: Option<usize>,
        #[arg(long, default_value_t = 2)]
        threads: usize,
    },
    /// Write a checkpoint as the model's file
    Export { checkpoint: PathBuf, out: PathBuf },
    /// Write a random model of 300 million numbers, to measure speed with
    Random {
        out: PathBuf,
        #[arg(long, value_enum, default_value = "q8_0")]
        quantization: Quantization,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

#[derive(Args)]
struct Training {
    /// Numbers per token; a multiple of 32
    #[arg(long, default_value_t = 160)]
    width: usize,
    #[arg(long, default_value_t = 5)]
    layers: usize,
    /// Numbers inside a feed-forward layer; a multiple of 32
    #[arg(long, default_value_t = 416)]
    ffn: usize,
    #[arg(long, default_value_t = 19000)]
    steps: u64,
    /// The highest learning rate
    #[arg(long, default_value_t = 0.0015)]
    rate: f32,
    /// The share of the steps in which the rate falls
    #[arg(long, default_value_t = 0.6)]
    fall: f32,
    /// Rows in a step
    #[arg(long, default_value_t = 16)]
    rows: usize,
    /// Tokens in a row
    #[arg(long, default_value_t = 512)]
    tokens: usize,
    /// The weight of a byte that the model does not write
    #[arg(long, default_value_t = 0.1)]
    other: f32,
    /// ... until this step
    #[arg(long, default_value_t = 900)]
    other_until: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Stop after so many minutes; the same command goes on
    #[arg(long)]
    minutes: Option<f64>,
    /// The model's file
    #[arg(long, default_value = "starter/kontekst.gguf")]
    out: PathBuf,
    /// The file to which the state of the training is written each minute
    #[arg(long, default_value = "target/kontekst.checkpoint")]
    checkpoint: PathBuf,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            let mut source = error.source();
            while let Some(error) = source {
                text = format!("{text}: {error}");
                source = error.source();
            }
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Train(training) => {
            let state = train(&training.plan(), |line| println!("{line}"))?;
            gguf::write(&training.out, state.shape, &state.numbers)?;
        }
        Command::Samples { count, seed } => {
            let mut draw = Draw::for_training(fastrand::Rng::with_seed(seed));
            for _ in 0..count {
                let sample = sample(&mut draw);
                println!("=== {}", sample.kind);
                for (role, text) in sample.conversation {
                    println!("[{role:?}] {text}");
                }
            }
        }
        Command::Ask { model, request } => {
            let (shape, numbers) = load(&model)?;
            println!("{}", answer(shape, &numbers, &prompt(&[(Role::User, request)]), 1000));
        }
        Command::Eval { model, calls, seed, wrong, threads } => {
            let mut examined = examined(&model, threads)?;
            let report = eval::run(&mut *examined, calls, seed, &eval::handwritten_file())?;
            if let Some(count) = wrong {
                print!("{}", report.wrong(count));
            }
            print!("{report}");
        }
        Command::Export { checkpoint, out } => {
            let state = Checkpoint::read(&checkpoint)?;
            gguf::write(&out, state.shape, &state.numbers)?;
        }
        Command::Random { out, quantization, seed } => gguf::random(&out, quantization, seed)?,
    }
    Ok(())
}

/// A model's file in kontekst's own engine where that is built in, else by the trainer's decoder.
fn examined(path: &Path, threads: usize) -> Result<Box<dyn eval::Model>, Box<dyn Error>> {
    #[cfg(feature = "engine")]
    if path.extension().is_some_and(|ending| ending == "gguf") {
        println!("{} in kontekst's engine", path.display());
        return Ok(Box::new(eval::InEngine::open(path.to_owned())?));
    }
    println!("{} by the trainer's decoder", path.display());
    let (shape, numbers) = load(path)?;
    Ok(Box::new(eval::Own { shape, numbers, threads }))
}

/// A model or a checkpoint, by its ending.
fn load(path: &Path) -> Result<(Shape, Vec<f32>), Box<dyn Error>> {
    if path.extension().is_some_and(|ending| ending == "gguf") {
        return Ok(gguf::read(path)?);
    }
    let state = Checkpoint::read(path)?;
    Ok((state.shape, state.numbers))
}

impl Training {
    fn plan(&self) -> Plan {
        Plan {
            shape: Shape { width: self.width, layers: self.layers, ffn: self.ffn },
            schedule: Schedule { steps: self.steps, peak: self.rate, rise: 100, fall: self.fall },
            seed: self.seed,
            rows: self.rows,
            tokens: self.tokens,
            other: self.other,
            other_until: self.other_until,
            threads: self.threads,
            checkpoint: self.checkpoint.clone(),
            minutes: self.minutes,
        }
    }
}
