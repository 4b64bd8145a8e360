//! A run that has to start the daemon first.

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
        options.rounds,
        [&mut || Ok(process::run(fixture.ask_curl("t1d0", "say hello"))?.wall()), &mut || {
            fixture.home.stop_daemon()?;
            Ok(process::run(fixture.ask_kontekst("t1d0", "say hello"))?.wall())
        }],
    )?;
    Ok(vec![Row::ratio("one-shot that starts the daemon", median(&kontekst)?, median(&curl)?, 0.7, "x curl")])
}
