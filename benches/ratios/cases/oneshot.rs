//! One short prompt and an answer of one token, with the daemon running.

use super::{LARGE_WINDOW, in_turn};
use crate::{
    Failure, clock,
    fixture::{Fixture, Options},
    process,
    process::Finished,
    table::{Row, median},
};

/// Returns a prompt that is different each time, so that it is not in a cache.
fn prompt() -> String {
    format!("say hello at {}", clock::now())
}

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let fixture = Fixture::new(options, LARGE_WINDOW)?;
    process::run(fixture.ask_kontekst("t1d0", &prompt()))?;
    fixture.server.forget();
    let stored = fixture.home.sessions();

    // The wall time, and the time until the request was at the server, in milliseconds.
    let times = |ran: Finished| -> Result<(f64, f64), Failure> {
        Ok((ran.wall(), clock::millis(ran.started, fixture.server.record()?.arrived)))
    };
    let [minimal, curl, kontekst] = in_turn(
        options.rounds,
        [
            &mut || times(process::run(fixture.ask_minimal_client("t1d0", &prompt())?)?),
            &mut || times(process::run(fixture.ask_curl("t1d0", &prompt()))?),
            &mut || times(process::run(fixture.ask_kontekst("t1d0", &prompt()))?),
        ],
    )?;
    let runs = options.rounds as usize + 1;
    if fixture.home.sessions() != stored + runs {
        return Err(format!("{runs} runs stored {} sessions", fixture.home.sessions() - stored).into());
    }

    let wall = |times: &[(f64, f64)]| median(&times.iter().map(|times| times.0).collect::<Vec<_>>());
    let wire = |times: &[(f64, f64)]| median(&times.iter().map(|times| times.1).collect::<Vec<_>>());
    Ok(vec![
        Row::ratio("one-shot", wall(&kontekst)?, wall(&curl)?, 0.35, "x curl"),
        Row::ratio("request on the wire", wire(&kontekst)?, wire(&minimal)?, 3.0, "x minimal"),
        memory(options, &fixture)?,
        fixed_prompt(&fixture)?,
    ])
}

fn memory(options: &Options, fixture: &Fixture) -> Result<Row, Failure> {
    let [curl, kontekst] = in_turn(
        options.rounds.min(5),
        [&mut || megabytes(&fixture.ask_curl("t1d0", &prompt())), &mut || {
            megabytes(&fixture.ask_kontekst("t1d0", &prompt()))
        }],
    )?;
    let (curl, kontekst) = (median(&curl)?, median(&kontekst)?);
    let from = format!("{kontekst:.1} MB / {curl:.1} MB");
    Ok(Row::share("peak memory of the client", from, kontekst / curl, 0.5, "x curl"))
}

fn megabytes(command: &std::process::Command) -> Result<f64, Failure> {
    Ok(process::peak_memory(command)? as f64 / 1e6)
}

/// Measures what the default agent sends besides the prompt. A model on a desktop machine processes a few hundred
/// tokens a second, so this takes the longest part of the first answer.
fn fixed_prompt(fixture: &Fixture) -> Result<Row, Failure> {
    fixture.server.forget();
    process::run(fixture.home.kontekst(&["run", "--new", &prompt()]))?;
    let bytes = fixture.server.record()?.fixed_bytes as f64;
    Ok(Row::amount("system text and tools", bytes / 1024.0, 6.0, "KiB"))
}
