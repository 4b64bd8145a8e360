//! Many at once.

use std::process::Command;

use super::{WIDE, in_turn};
use crate::{
    Failure, clock,
    lab::{Lab, Setup},
    process,
    table::{Row, median},
};

const CROWD: usize = 256;

pub fn run(setup: &Setup) -> Result<Vec<Row>, Failure> {
    let lab = Lab::new(setup, WIDE)?;
    process::run(lab.ask_kontekst("t1d0", "say hello"))?;
    let [curl, kontekst] = in_turn(
        setup.rounds.min(5),
        [&mut || together(|| lab.ask_curl("st50d20000", "say much")), &mut || {
            together(|| lab.ask_kontekst("st50d20000", "say much"))
        }],
    )?;
    Ok(vec![Row::ratio("256 at once, 50 tokens each", median(&kontekst)?, median(&curl)?, 0.75, "x curl")])
}

/// Starts the crowd and returns the milliseconds until the last one is done.
///
/// # Errors
///
/// When one fails, or a token is lost or out of order.
fn together(command: impl Fn() -> Command) -> Result<f64, Failure> {
    let started = clock::now();
    let crowd: Vec<_> = (0..CROWD).map(|_| process::start(command())).collect::<Result<_, _>>()?;
    let crowd: Vec<_> = crowd.into_iter().map(process::Running::finish).collect::<Result<_, _>>()?;
    let wall = clock::millis(started, clock::now());
    for ran in &crowd {
        let stamps = ran.stamps();
        if stamps.len() != 50 || !stamps.is_sorted() {
            return Err(format!("{} of 50 tokens came in order", stamps.len()).into());
        }
    }
    Ok(wall)
}
