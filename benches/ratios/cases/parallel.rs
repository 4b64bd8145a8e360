//! Many runs at the same time.

use std::process::Command;

use super::{LARGE_WINDOW, in_turn};
use crate::{
    Failure, clock,
    fixture::{Fixture, Options},
    process,
    table::{Row, median},
};

const PROCESSES: usize = 256;

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let fixture = Fixture::new(options, LARGE_WINDOW)?;
    process::run(fixture.ask_kontekst("t1d0", "say hello"))?;
    let [curl, kontekst] = in_turn(
        options.rounds.min(5),
        [&mut || together(|| fixture.ask_curl("st50d20000", "say much")), &mut || {
            together(|| fixture.ask_kontekst("st50d20000", "say much"))
        }],
    )?;
    Ok(vec![Row::ratio("256 at once, 50 tokens each", median(&kontekst)?, median(&curl)?, 0.7, "x curl")])
}

/// Starts the processes and returns the milliseconds until the last one is done.
///
/// # Errors
///
/// Fails if one of them fails, or if a token is lost or out of order.
fn together(command: impl Fn() -> Command) -> Result<f64, Failure> {
    let started = clock::now();
    let processes: Vec<_> = (0..PROCESSES).map(|_| process::start(command())).collect::<Result<_, _>>()?;
    let processes: Vec<_> = processes.into_iter().map(process::Running::finish).collect::<Result<_, _>>()?;
    let wall = clock::millis(started, clock::now());
    for ran in &processes {
        let stamps = ran.stamps();
        if stamps.len() != 50 || !stamps.is_sorted() {
            return Err(format!("{} of 50 tokens came in order", stamps.len()).into());
        }
    }
    Ok(wall)
}
