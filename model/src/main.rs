//! `cargo run --profile train -p kontekst-model -- train` makes assets/kontekst.gguf.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use kontekst_model::data::{Draw, Role, prompt, sample};
use kontekst_model::decode::answer;
use kontekst_model::eval;
use kontekst_model::net::Shape;
use kontekst_model::train::{Checkpoint, Plan, Schedule, train};

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
    /// Ask a checkpoint
    Ask { checkpoint: PathBuf, request: String },
    /// Examine a checkpoint: held-out requests, answers to results, handwritten phrasings
    Eval {
        #[arg(default_value = "target/kontekst.checkpoint")]
        checkpoint: PathBuf,
        /// Held-out requests that mean a call
        #[arg(long, default_value_t = eval::CALLS)]
        calls: usize,
        /// Show the first wrong answers of each kind
        #[arg(long)]
        wrong: bool,
        #[arg(long, default_value_t = 2)]
        threads: usize,
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
    #[arg(long, default_value_t = 6000)]
    steps: u64,
    /// The highest learning rate
    #[arg(long, default_value_t = 0.004)]
    rate: f32,
    /// The share of the steps in which the rate falls
    #[arg(long, default_value_t = 0.4)]
    fall: f32,
    /// Rows in a step
    #[arg(long, default_value_t = 16)]
    rows: usize,
    /// Tokens in a row
    #[arg(long, default_value_t = 512)]
    tokens: usize,
    /// What a byte counts that is not the model's to say
    #[arg(long, default_value_t = 0.1)]
    other: f32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Stop after so many minutes; the same command goes on
    #[arg(long)]
    minutes: Option<f64>,
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
            train(&training.plan(), |line| println!("{line}"))?;
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
        Command::Ask { checkpoint, request } => {
            let state = Checkpoint::read(&checkpoint)?;
            println!("{}", answer(state.shape, &state.numbers, &prompt(&[(Role::User, request)]), 1000));
        }
        Command::Eval { checkpoint, calls, wrong, threads } => {
            let state = Checkpoint::read(&checkpoint)?;
            let mut own = eval::Own { shape: state.shape, numbers: state.numbers, threads };
            let report = eval::run(&mut own, calls, &eval::handwritten_file())?;
            if wrong {
                print!("{}", report.wrong());
            }
            print!("{report}");
        }
    }
    Ok(())
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
            threads: self.threads,
            checkpoint: self.checkpoint.clone(),
            minutes: self.minutes,
        }
    }
}
