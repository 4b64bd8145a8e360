//! The start of the program, measured with `--version`.

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
    Ok(vec![Row::ratio("--version", median(&kontekst)?, median(&curl)?, 0.12, "x curl")])
}
