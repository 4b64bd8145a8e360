//! One short question and an answer of one token, with the daemon running.

use super::{WIDE, in_turn};
use crate::{
    Failure, clock,
    lab::{Lab, Setup},
    process,
    process::Ran,
    table::{Row, median},
};

/// Never the same twice, so that nothing of it is in a cache.
fn prompt() -> String {
    format!("say hello at {}", clock::now())
}

pub fn run(setup: &Setup) -> Result<Vec<Row>, Failure> {
    let lab = Lab::new(setup, WIDE)?;
    process::run(lab.ask_kontekst("t1d0", &prompt()))?;
    lab.server.forget();
    let stored = lab.desk.sessions();

    // Wall time, and the time at which the request was at the server, in milliseconds.
    let times = |ran: Ran| -> Result<(f64, f64), Failure> {
        Ok((ran.wall(), clock::millis(ran.started, lab.server.record()?.arrived)))
    };
    let [floor, curl, kontekst] = in_turn(
        setup.rounds,
        [
            &mut || times(process::run(lab.ask_floor("t1d0", &prompt())?)?),
            &mut || times(process::run(lab.ask_curl("t1d0", &prompt()))?),
            &mut || times(process::run(lab.ask_kontekst("t1d0", &prompt()))?),
        ],
    )?;
    let runs = setup.rounds as usize + 1;
    if lab.desk.sessions() != stored + runs {
        return Err(format!("{runs} runs stored {} sessions", lab.desk.sessions() - stored).into());
    }

    let wall = |times: &[(f64, f64)]| median(&times.iter().map(|times| times.0).collect::<Vec<_>>());
    let wire = |times: &[(f64, f64)]| median(&times.iter().map(|times| times.1).collect::<Vec<_>>());
    Ok(vec![
        Row::ratio("one-shot", wall(&kontekst)?, wall(&curl)?, 0.40, "x curl"),
        Row::ratio("request on the wire", wire(&kontekst)?, wire(&floor)?, 3.0, "x floor"),
        memory(setup, &lab)?,
        fixed_prompt(&lab)?,
    ])
}

fn memory(setup: &Setup, lab: &Lab) -> Result<Row, Failure> {
    let [curl, kontekst] = in_turn(
        setup.rounds.min(5),
        [&mut || megabytes(&lab.ask_curl("t1d0", &prompt())), &mut || {
            megabytes(&lab.ask_kontekst("t1d0", &prompt()))
        }],
    )?;
    let (curl, kontekst) = (median(&curl)?, median(&kontekst)?);
    let from = format!("{kontekst:.1} MB / {curl:.1} MB");
    Ok(Row::share("peak memory of the client", from, kontekst / curl, 0.5, "x curl"))
}

fn megabytes(command: &std::process::Command) -> Result<f64, Failure> {
    Ok(process::peak_memory(command)? as f64 / 1e6)
}

/// What the default agent sends besides the question: a model on a desk reads some hundred tokens a
/// second, so this is the longest part of a first answer.
fn fixed_prompt(lab: &Lab) -> Result<Row, Failure> {
    lab.server.forget();
    process::run(lab.desk.kontekst(&["run", "--new", &prompt()]))?;
    let bytes = lab.server.record()?.fixed_bytes as f64;
    Ok(Row::amount("system text and tools", bytes / 1024.0, 6.0, "KiB"))
}
