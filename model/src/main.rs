//! `kontekst-model samples [N] [SEED]`: prints conversations.
#![allow(clippy::print_stdout)]

use kontekst_model::data::{Draw, Role, sample, shortened_result};

fn main() {
    let mut args = std::env::args().skip(2);
    let mut number = |or| args.next().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (count, seed) = (number(20), number(1));
    let mut draw = Draw::for_training(fastrand::Rng::with_seed(seed));
    for _ in 0..count {
        let sample = sample(&mut draw);
        println!("=== {}", sample.kind);
        for (role, text) in sample.conversation {
            let text = if role == Role::Tool { shortened_result(&text) } else { text };
            println!("[{role:?}] {text}");
        }
    }
}
