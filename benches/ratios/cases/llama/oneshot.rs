//! One short question and an answer that is cut after one token.

use super::{WINDOW, llama, with_server};
use crate::{
    Failure,
    cases::in_turn,
    clock,
    desk::Desk,
    floor,
    lab::Setup,
    process,
    real::Real,
    table::{Row, median},
    tap::Tap,
};

/// kontekst's exit status for an answer that was cut.
const CUT: i32 = 5;

/// The same length each time, so that a place can be kept for it.
fn prompt() -> String {
    format!("say hello at {:020}", clock::now())
}

pub fn run(setup: &Setup) -> Result<Vec<Row>, Failure> {
    let real = Real::start(llama(setup)?, WINDOW)?;
    let kontekst = |desk: &Desk, prompt: &str| {
        process::run_to(CUT, desk.kontekst(&["run", "--new", "--agent", "brief", prompt]))
    };

    // What kontekst sends, for the floor to send the same: the server does the same work for both.
    let (tap, first) = (Tap::before(real.address)?, prompt());
    kontekst(&with_server(setup, tap.address)?, &first)?;
    let body = tap.bodies("/v1/chat/completions").pop().ok_or("kontekst did not ask")?;
    if !body.contains(&first) {
        return Err("the question is not in the request".into());
    }

    let desk = with_server(setup, real.address)?;
    let address = real.address.to_string();
    let floor = |body: &str| process::run(floor::command(&desk, &address, body)?);
    let [floor, kontekst] = in_turn(
        setup.rounds,
        [&mut || Ok(floor(&body.replace(&first, &prompt()))?.wall()), &mut || {
            Ok(kontekst(&desk, &prompt())?.wall())
        }],
    )?;
    Ok(vec![Row::ratio("one token from llama.cpp", median(&kontekst)?, median(&floor)?, 1.25, "x floor")])
}
