//! The start of the program, measured with `--version`, and a run that has to start the daemon first.

use super::{LARGE_WINDOW, in_turn};
use crate::{
    Failure,
    fixture::{Fixture, Options},
    process,
    table::{Row, median},
};

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let fixture = Fixture::new(options, LARGE_WINDOW)?;
    let [curl, kontekst] = in_turn(
        options.rounds * 2,
        [&mut || Ok(process::run(fixture.curl(&["--version"]))?.wall()), &mut || {
            Ok(process::run(fixture.home.kontekst(&["--version"]))?.wall())
        }],
    )?;
    let version = Row::ratio("--version", median(&kontekst)?, median(&curl)?, 0.12, "x curl");
    let [curl, kontekst] = in_turn(
        options.rounds,
        [&mut || Ok(process::run(fixture.ask_curl("t1d0", "say hello"))?.wall()), &mut || {
            fixture.home.stop_daemon()?;
            Ok(process::run(fixture.ask_kontekst("t1d0", "say hello"))?.wall())
        }],
    )?;
    let starts = "one-shot that starts the daemon";
    Ok(vec![version, Row::ratio(starts, median(&kontekst)?, median(&curl)?, 0.7, "x curl")])
}
